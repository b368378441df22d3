"""Reads how a task declares its variables: `kernel: rbf | laplace`, `rate: 0.001 .. 1`, `order: permutation`,
`n: fixed`.

A declaration holds for what is assigned to its name (`name: ...`, `name = ...`) anywhere in the editable files, and for
each element if that is a list. It takes precedence over a comment on the line. Lists of integers that can be only bits
or a permutation are recognised without a declaration.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite

from coral.native.search.numeric.variables import Variable, VariableKind

FEWEST = 8  # integers in a list, from which on it may be recognised as bits or a permutation
PERMUTATION, FIXED = "permutation", "fixed"
BITS = ((0.0, 1.0), (-1.0, 1.0))
CLOSING = {"[": "]", "(": ")", "{": "}"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    name: str
    choices: tuple[str, ...] = ()
    low: float = -inf
    high: float = inf
    fixed: bool = False
    permutation: bool = False


def read_declarations(data: object) -> list[Declaration]:
    """Read the declarations of a mapping from names to texts; ValueError says what is wrong."""
    if not isinstance(data, Mapping):
        raise ValueError(f"variables must be names with what they may be; got {data!r}")
    return [_read(str(name), str(text)) for name, text in data.items()]


def _read(name: str, text: str) -> Declaration:
    choices = tuple(word.strip() for word in text.split("|"))
    if len(choices) > 1 and all(choices) and len(set(choices)) == len(choices):
        return Declaration(name=name, choices=choices)
    if text in (PERMUTATION, FIXED):
        return Declaration(name=name, permutation=text == PERMUTATION, fixed=text == FIXED)
    low, dots, high = text.partition("..")
    try:
        bounds = float(low), float(high)
    except ValueError:
        dots = ""
    if dots and all(map(isfinite, bounds)) and bounds[0] < bounds[1]:
        return Declaration(name=name, low=bounds[0], high=bounds[1])
    raise ValueError(f"the variable {name} must be `a | b`, `low .. high`, {PERMUTATION} or {FIXED}; got {text!r}")


def apply_declarations(text: str, variables: Sequence[Variable], declared: Iterable[Declaration]) -> list[Variable]:
    """Return the variables of a text, changed by their declarations, in the order in which they stand. One that is
    alone in its permutation is left out: there is nothing to exchange it with."""
    out = list(variables)
    for declaration in declared:
        for start, end in _assigned(text, declaration.name):
            inside = [variable for variable in out if start <= variable.start < end]
            out = [variable for variable in out if not start <= variable.start < end]
            out += _declare(text, start, end, inside, declaration)
    sizes = Counter(variable.permutation for variable in out if variable.permutation)
    kept = [variable for variable in out if sizes[variable.permutation] != 1]
    return sorted(kept, key=lambda variable: variable.start)


def _assigned(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield where the values that are assigned to a name begin and end."""
    for found in re.finditer(rf"""(?<![\w.])(["']?){re.escape(name)}\1\s*[:=](?!=)[ \t]*""", text):
        start = found.end()
        first = text[start : start + 1]
        if first in CLOSING and first:
            yield start, _end_of_brackets(text, start)
        elif first in ("'", '"') and first:
            end = text.find(first, start + 1)
            yield start, (end if end > 0 else len(text))
        else:
            end_of_scalar = re.compile(r"[,;}\])#\n]|$").search(text, start)
            yield start, (end_of_scalar.start() if end_of_scalar else len(text))


def _end_of_brackets(text: str, start: int) -> int:
    opening, depth = text[start], 0
    for position in range(start, len(text)):
        depth += (text[position] == opening) - (text[position] == CLOSING[opening])
        if not depth:
            return position
    return len(text)


def _declare(text: str, start: int, end: int, inside: list[Variable], declared: Declaration) -> list[Variable]:
    if declared.fixed:
        return []
    if declared.choices:
        return list(_choices(text, start, end, declared))
    if declared.permutation:
        group = f"{declared.name} at {start}"
        integers = [variable for variable in inside if variable.kind is VariableKind.INTEGER]
        return [replace(variable, permutation=group) for variable in integers]
    return [
        replace(variable, low=max(variable.low, declared.low), high=min(variable.high, declared.high))
        if variable.kind is not VariableKind.CHOICE
        else variable
        for variable in inside
    ]


def _choices(text: str, start: int, end: int, declared: Declaration) -> Iterator[Variable]:
    """Yield a variable for each of the declared words between two places; if all words have one letter, and the text
    consists of them, for each of its letters."""
    words = sorted(declared.choices, key=len, reverse=True)
    one_of = "|".join(map(re.escape, words))
    letters = max(map(len, words)) == 1 and re.fullmatch(rf"""["']?(?:{one_of})+["']?""", text[start:end].strip())
    pattern = one_of if letters else rf"(?<![\w.+-])(?:{one_of})(?![\w.])"
    for number, found in enumerate(re.compile(pattern).finditer(text, start, end)):
        yield Variable(
            start=found.start(),
            end=found.end(),
            kind=VariableKind.CHOICE,
            value=float(declared.choices.index(found.group())),
            choices=declared.choices,
            column=f"{declared.name} at {start}",
            row=f"{declared.name} at {start}/{number}",
            name=declared.name if not number else f"{declared.name}[{number}]",
        )


def recognise(variables: Sequence[Variable]) -> list[Variable]:
    """Recognise bit strings and permutations. A column of integers that are all bits becomes choices; a column that
    holds each integer of a range once becomes a permutation."""
    columns: dict[str, list[Variable]] = {}
    for variable in variables:
        columns.setdefault(variable.column, []).append(variable)
    return [_recognised(variable, columns[variable.column]) for variable in variables]


def _recognised(variable: Variable, column: Sequence[Variable]) -> Variable:
    bounded = any(isfinite(other.low) or isfinite(other.high) or other.permutation for other in column)
    integers = all(other.kind is VariableKind.INTEGER for other in column)
    if not variable.column or len(column) < FEWEST or bounded or not integers:
        return variable
    values = sorted({other.value for other in column})
    if tuple(values) in BITS:
        words = tuple(str(round(value)) for value in values)
        return replace(variable, kind=VariableKind.CHOICE, value=float(values.index(variable.value)), choices=words)
    if len(values) == len(column) and values[0] in (0.0, 1.0) and values[-1] - values[0] == len(values) - 1:
        return replace(variable, permutation=variable.column)
    return variable
