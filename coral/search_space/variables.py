"""Finds the variables of a text: numbers and choices that may be varied. All text between them is kept byte for byte.

A variable is a real number, an integer, or a choice between a few words. While its value is unchanged it keeps the
characters it was read from; a changed real is written so that it reads back as the same number.

JSON is read by its structure, Python by its tokens, other text by a pattern. Variables of the same place in several
items share a column, those of one item a row: lists of JSON are tables, and so are runs of lines that differ in nothing
but their numbers. A text that cannot be read has no variables, and raises no error.
"""

import io
import json
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import accumulate, groupby
from keyword import iskeyword
from math import inf, isfinite
from typing import Any

LARGEST_INTEGER = 1e15  # larger ones are identifiers or hashes, not quantities
JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[\[\]{}:,]')

# A number that is no part of a name, version, date, time or fraction; with its sign if no operand stands before that.
TEXT_NUMBER = re.compile(
    r"(?<![\w.$])(?<!\w[-+/:])(?:(?<![\w)\]])[-+])?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]|[-/:]\d)"
)
QUOTED_OR_COMMENT = re.compile(r'"(?!\s*[-+.\d][\d.eE+-]*\s*")[^"\n]*"|(?:^|(?<=\s))(?:#|//)(?=\s|$).*', re.MULTILINE)
LEADING_ZERO = re.compile(r"[-+]?0\d")

BOOLEANS = (("false", "true"), ("False", "True"))  # of JSON, of Python
LAYOUT = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)
BEFORE_BOOLEAN = frozenset("=:(,[")
JsonPath = tuple[str | int, ...]  # keys as they are written, with their quotes; indices of lists


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
    name: str = ""  # says where the variable stands, for people
    low: float = -inf
    high: float = inf
    permutation: str = ""  # variables of one permutation exchange their values and take no others

    def text(self, value: float) -> str:
        """Return the characters for another value; integers and choices are rounded to a possible value."""
        if self.kind is VariableKind.CHOICE:
            return self.choices[min(max(round(value), 0), len(self.choices) - 1)]
        return str(round(value)) if self.kind is VariableKind.INTEGER else repr(float(value))

    def read(self, literal: str) -> float | None:
        """Return the value that these characters stand for; None if they are none of the variable's values."""
        with suppress(ValueError):
            return float(self.choices.index(literal) if self.choices else literal.replace("_", ""))
        return None


def choice(word: str, start: int, choices: tuple[str, ...], **place: Any) -> Variable:
    """Return the variable for a word that stands at `start`. `place`: its column, row and name."""
    end, value = start + len(word), float(choices.index(word))
    return Variable(start=start, end=end, kind=VariableKind.CHOICE, value=value, choices=choices, **place)


def variable_of_literal(literal: str, start: int) -> Variable | None:
    """Return the variable for a number or boolean that stands at `start`; None if it could not be written back."""
    for booleans in BOOLEANS:
        if literal in booleans:
            return choice(literal, start, booleans)
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


def lines(text: str, variables: Sequence[Variable]) -> Iterator[tuple[int, str, list[Variable]]]:
    """Yield where each line begins, the line, and the variables on it."""
    begin = 0
    for line in text.splitlines(keepends=True):
        yield begin, line, [variable for variable in variables if begin <= variable.start < begin + len(line)]
        begin += len(line)


def find_variables(name: str, text: str) -> list[Variable]:
    """Return the numbers and booleans of a file, in the order in which they stand."""
    if name.endswith(".json"):
        return _in_json(text)
    return _in_python(text) if name.endswith(".py") else _in_text(text)


def _in_json(text: str) -> list[Variable]:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return []
    found: list[tuple[JsonPath, Variable]] = []
    path: list[str | int] = []  # of the value to come; a list's own index stands last
    key = ""
    for token in JSON_TOKEN.finditer(text):
        word = token.group()
        if word in "[{":
            path.append(0 if word == "[" else "")
        elif word in "]}":
            path.pop()
        elif word == "," and isinstance(index := path[-1], int):
            path[-1] = index + 1
        elif word == ":":
            path[-1] = key
        elif word[0] == '"':
            key = word
        elif (variable := variable_of_literal(word, token.start())) is not None:
            found.append((tuple(path), variable))
    lengths = Counter(path[:-1] for path, _ in found if path and isinstance(path[-1], int))
    return [_place_in_table(path, variable, lengths) for path, variable in found]


def _place_in_table(path: JsonPath, variable: Variable, lengths: Counter[JsonPath]) -> Variable:
    """Set column and row of a variable: the column is its path with the first index left open; the row is the item of
    that outermost list.

    Lists of numbers that stand side by side and are equally long are columns of one table.
    """
    outermost = next((depth for depth, part in enumerate(path) if isinstance(part, int)), len(path))
    column, row = (*path[:outermost], "*", *path[outermost + 1 :]), path[: outermost + 1]
    if outermost == len(path) - 1:
        row = (*path[: outermost - 1], f"#{lengths[path[:-1]]}", path[outermost])
    return replace(variable, column="/".join(map(str, column)), row="/".join(map(str, row)), name=_readable(path))


def _readable(path: JsonPath) -> str:
    """Write a path for people: `rows[7].x`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part.strip(chr(34))}" for part in path]
    return "".join(parts).lstrip(".")


def _in_python(text: str) -> list[Variable]:
    try:
        tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in LAYOUT]
    except (tokenize.TokenError, SyntaxError):
        return []
    line_starts = list(accumulate(map(len, io.StringIO(text)), initial=0))
    variables: list[Variable | None] = []
    for k, token in enumerate(tokens):
        first, before = token, tokens[k - 1].string if k else "\n"
        if token.type == tokenize.NUMBER:
            if before in ("-", "+") and (k < 2 or not _is_operand(tokens[k - 2])):
                first = tokens[k - 1]
        elif token.string not in BOOLEANS[1] or before not in BEFORE_BOOLEAN:
            continue
        start, end = (line_starts[row - 1] + column for row, column in (first.start, token.end))
        variables.append(variable_of_literal(text[start:end], start))
    return [variable for variable in variables if variable is not None]


def _is_operand(token: tokenize.TokenInfo) -> bool:
    """Return whether a `-` after this token is a subtraction: else it is a sign."""
    named = token.type == tokenize.NAME and not iskeyword(token.string)
    return named or token.type in (tokenize.NUMBER, tokenize.STRING) or token.string in (")", "]", "}")


def _in_text(text: str) -> list[Variable]:
    visible = QUOTED_OR_COMMENT.sub(lambda match: " " * len(match.group()), text)
    numbers = [match for match in TEXT_NUMBER.finditer(visible) if not LEADING_ZERO.match(match.group())]
    variables = [variable_of_literal(match.group(), match.start()) for match in numbers]
    return [variable for variable in variables if variable is not None]


def arrange_lines(text: str, variables: Sequence[Variable]) -> list[Variable]:
    """Give rows and columns to the variables of lines: a run of lines of one shape is a table, a lone line a column."""
    shaped = [(_shape(*line), number, line[2]) for number, line in enumerate(lines(text, variables), 1)]
    out: list[Variable] = []
    for _, run in groupby(shaped, key=lambda line: line[0]):
        table = list(run)
        column, alone = f"line {table[0][1]}", len(table) == 1
        for _, number, on_line in table:
            row = f"line {number}"
            for k, variable in enumerate(on_line):
                name = row + (f", number {k + 1}" if len(on_line) > 1 else "")
                place = (column, f"{row}/{k}") if alone else (f"{column}/{k}", row)
                out.append(replace(variable, column=place[0], row=place[1], name=name))
    return out


def _shape(begin: int, line: str, variables: list[Variable]) -> str:
    """Return the line with its variables cut out and its blanks removed."""
    for variable in reversed(variables):
        line = f"{line[: variable.start - begin]}#{line[variable.end - begin :]}"
    return "".join(line.split()).rstrip(",")
