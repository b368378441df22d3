"""Variables: the numbers and choices in a text that may be varied. Everything between them is kept byte for byte.

A variable is a real number, an integer, or a choice between a few words. While its value is unchanged it keeps the
characters it was read from; a changed real is written so that it reads back as the same number.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isfinite

LARGEST_INTEGER = 1e15  # larger ones are identifiers or hashes, not quantities


class VariableKind(StrEnum):
    REAL = "real"
    INTEGER = "integer"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable of a text. `value` is the number, or the index into `choices`; variables of a `column` are alike."""

    start: int
    end: int
    kind: VariableKind
    value: float
    choices: tuple[str, ...] = ()
    column: str = ""
    row: str = ""  # variables of one row describe one thing
    name: str = ""  # where it stands, for people
    low: float = -inf
    high: float = inf

    def text(self, value: float) -> str:
        """The characters for another value; integers and choices are rounded to what they can be."""
        if self.kind is VariableKind.CHOICE:
            return self.choices[min(max(round(value), 0), len(self.choices) - 1)]
        return str(round(value)) if self.kind is VariableKind.INTEGER else repr(float(value))


@dataclass(frozen=True, slots=True)
class LineComment:
    """What a comment says of the variables on its line: `# fixed`, `# range: 0..1` or `# choices: a, b, c`."""

    fixed: bool = False
    low: float = -inf
    high: float = inf
    choices: tuple[str, ...] = ()

    @classmethod
    def read(cls, line: str) -> "LineComment":
        found = _COMMENT.search(line)
        if found is None:
            return cls()
        if found["choices"] is not None:
            choices = tuple(word.strip() for word in found["choices"].split(",") if word.strip())
            return cls(choices=choices) if len(choices) > 1 else cls()
        if found["low"] is not None:
            low, high = (_bound(found[name]) for name in ("low", "high"))
            return cls(low=low, high=high) if low is not None and high is not None and low < high else cls()
        return cls(fixed=True)


_COMMENT = re.compile(
    r"(?:#|//|;)\s*(?:(?P<fixed>fixed)\b"
    r"|range:\s*(?P<low>[^\s.]\S*?)\s*\.\.\s*(?P<high>\S+)"
    r"|choices:\s*(?P<choices>.+?)\s*(?:\*/)?\s*$)"
)


def _bound(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def variable_of_literal(literal: str, start: int) -> Variable | None:
    """The variable for a number that stands at `start`, or None where it could not be written back."""
    plain = literal.replace("_", "")
    real = any(mark in plain for mark in ".eE")
    try:
        value = float(plain)
    except ValueError:
        return None
    if not isfinite(value) or (not real and abs(value) > LARGEST_INTEGER):
        return None
    kind = VariableKind.REAL if real else VariableKind.INTEGER
    return Variable(start=start, end=start + len(literal), kind=kind, value=value)


def apply_comments(text: str, variables: Iterable[Variable]) -> list[Variable]:
    """Drop, bound or replace variables as the comments on their lines say.

    A line with `choices` offers one variable: the first of the choices that stands on it.
    """
    out: list[Variable] = []
    begin = 0
    unassigned = sorted(variables, key=lambda variable: variable.start)
    for line in text.splitlines(keepends=True):
        end = begin + len(line)
        on_line = [variable for variable in unassigned if begin <= variable.start < end]
        out.extend(_apply_comment(line, begin, on_line))
        begin = end
    return out


def _apply_comment(line: str, begin: int, variables: list[Variable]) -> list[Variable]:
    comment = LineComment.read(line)
    if comment.fixed:
        return []
    if comment.choices:
        choice = _choice(line, begin, comment.choices)
        return [choice] if choice else []
    return [
        replace(variable, low=max(variable.low, comment.low), high=min(variable.high, comment.high))
        for variable in variables
        if variable.kind is not VariableKind.CHOICE or comment.low == -inf
    ]


def _choice(line: str, begin: int, choices: tuple[str, ...]) -> Variable | None:
    """The word on the line, left of the comment, that is one of the choices."""
    code = line[: _COMMENT.search(line).start()]  # type: ignore[union-attr]
    longest_first = sorted(range(len(choices)), key=lambda index: -len(choices[index]))
    for index in longest_first:
        found = re.search(rf"(?<![\w.]){re.escape(choices[index])}(?![\w.])", code)
        if found:
            start = begin + found.start()
            end = start + len(choices[index])
            return Variable(start=start, end=end, kind=VariableKind.CHOICE, value=index, choices=choices)
    return None


def make_columns_real(variables: Sequence[Variable]) -> list[Variable]:
    """A column that holds one real holds reals: an integer among them was merely written without a point."""
    reals = {variable.column for variable in variables if variable.kind is VariableKind.REAL and variable.column}
    return [
        replace(variable, kind=VariableKind.REAL)
        if variable.kind is VariableKind.INTEGER and variable.column in reals
        else variable
        for variable in variables
    ]
