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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from math import inf, isfinite

LARGEST_INTEGER = 1e15  # larger ones are identifiers or hashes, not quantities
JSON_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[\[\]{}:,]')

# A number that is no part of a name, version, date, time or fraction; with its sign if no operand stands before that.
TEXT_NUMBER = re.compile(
    r"(?<![\w.$])(?<!\w[-+/:])(?:(?<![\w)\]])[-+])?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]|[-/:]\d)"
)
QUOTED_OR_COMMENT = re.compile(r'"(?!\s*[-+.\d][\d.eE+-]*\s*")[^"\n]*"|(?:^|(?<=\s))(?:#|//)(?=\s|$).*', re.MULTILINE)
LEADING_ZERO = re.compile(r"[-+]?0\d")

BOOLEANS = ("False", "True")
BEFORE_BOOLEAN = frozenset("=:(,[")
BEFORE_SIGN = frozenset("=:(,[{+-*/%<>|&^~@") | {"**", "//", "==", "!=", "<=", ">=", "->", ":=", "<<", ">>"}
BEFORE_SIGN |= {"return", "in", "and", "or", "not", "if", "else", "lambda", "yield", "+=", "-=", "*=", "/="}

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
        if self.kind is VariableKind.CHOICE:
            return float(self.choices.index(literal)) if literal in self.choices else None
        try:
            return float(literal.replace("_", ""))
        except ValueError:
            return None


_COMMENT = re.compile(
    r"(?:#|//|;)\s*(?:(?P<fixed>fixed)\b"
    r"|range:\s*(?P<low>[^\s.]\S*?)\s*\.\.\s*(?P<high>\S+)"
    r"|choices:\s*(?P<choices>.+?)\s*(?:\*/)?\s*$)"
)


def variable_of_literal(literal: str, start: int) -> Variable | None:
    """Return the variable for a number that stands at `start`; None if it could not be written back."""
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
    """Drop, bound or replace variables by the comments on their lines.

    A line with `choices` offers one variable: the first of the choices that stands on it.
    """
    in_order = sorted(variables, key=lambda variable: variable.start)
    return [kept for begin, line, on_line in _lines(text, in_order) for kept in _apply_comment(line, begin, on_line)]


def _lines(text: str, variables: Sequence[Variable]) -> Iterator[tuple[int, str, list[Variable]]]:
    """Yield where each line begins, the line, and the variables on it."""
    begin = 0
    for line in text.splitlines(keepends=True):
        yield begin, line, [variable for variable in variables if begin <= variable.start < begin + len(line)]
        begin += len(line)


def _apply_comment(line: str, begin: int, variables: list[Variable]) -> list[Variable]:
    """Return the variables of a line as its comment `# fixed`, `# range: 0..1` or `# choices: a, b, c` leaves them.

    A comment that cannot be used changes nothing.
    """
    found = _COMMENT.search(line)
    if found is None:
        return variables
    if found["choices"] is not None:
        choices = tuple(word.strip() for word in found["choices"].split(",") if word.strip())
        return _choice(line[: found.start()], begin, choices) if len(choices) > 1 else variables
    if found["low"] is not None:
        try:
            low, high = float(found["low"]), float(found["high"])
        except ValueError:
            return variables
        return [
            replace(variable, low=max(variable.low, low), high=min(variable.high, high)) if low < high else variable
            for variable in variables
            if variable.kind is not VariableKind.CHOICE or low == -inf or not low < high
        ]
    return []


def _choice(code: str, begin: int, choices: tuple[str, ...]) -> list[Variable]:
    """Return a variable for the word left of the comment that is one of the choices, if there is one."""
    longest_first = sorted(range(len(choices)), key=lambda index: -len(choices[index]))
    for index in longest_first:
        found = re.search(rf"(?<![\w.]){re.escape(choices[index])}(?![\w.])", code)
        if found:
            start, end = begin + found.start(), begin + found.end()
            return [Variable(start=start, end=end, kind=VariableKind.CHOICE, value=index, choices=choices)]
    return []


def make_columns_real(variables: Sequence[Variable]) -> list[Variable]:
    """Make all numbers of a column reals if one is: an integer among them was merely written without a point."""
    reals = {variable.column for variable in variables if variable.kind is VariableKind.REAL and variable.column}
    return [
        replace(variable, kind=VariableKind.REAL)
        if variable.kind is VariableKind.INTEGER and variable.column in reals
        else variable
        for variable in variables
    ]


def find_variables(name: str, text: str) -> list[Variable]:
    """Return all variables of a file, in the order in which they stand."""
    if name.endswith(".json"):
        return make_columns_real(_in_json(text))
    variables = _in_python(text) if name.endswith(".py") else _in_text(text)
    return make_columns_real(_lines_as_tables(text, apply_comments(text, variables)))


def _in_json(text: str) -> list[Variable]:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return []
    found: list[tuple[JsonPath, Variable]] = []
    path: list[str | int] = []  # of the value to come; a list's own index stands last
    inside: list[str] = []
    key = ""
    for token in JSON_TOKEN.finditer(text):
        word = token.group()
        if word in "[{":
            inside.append(word)
            path.append(0 if word == "[" else "")
        elif word in "]}":
            inside.pop()
            path.pop()
        elif word == "," and inside and inside[-1] == "[":
            path[-1] = int(path[-1]) + 1
        elif word == ":":
            path[-1] = key
        elif word[0] == '"':
            key = word
        elif (variable := _json_value(word, token.start())) is not None:
            found.append((tuple(path), variable))
    lengths = Counter(path[:-1] for path, _ in found if path and isinstance(path[-1], int))
    return [_place_in_table(path, variable, lengths) for path, variable in found]


def _json_value(word: str, start: int) -> Variable | None:
    """Return the variable for a boolean or a number; None for anything else."""
    if word in ("true", "false"):
        value, choices = float(word == "true"), ("false", "true")
        return Variable(start=start, end=start + len(word), kind=VariableKind.CHOICE, value=value, choices=choices)
    return variable_of_literal(word, start) if word[0] in "-0123456789" else None


def _place_in_table(path: JsonPath, variable: Variable, lengths: Counter[JsonPath]) -> Variable:
    """Set column and row of a variable: the column is its path with the first index left open; the row is the item of
    that outermost list.

    Lists of numbers that stand side by side and are equally long are columns of one table.
    """
    outermost = next((depth for depth, part in enumerate(path) if isinstance(part, int)), None)
    if outermost is None:
        joined = _join(path)
        return replace(variable, column=joined, row=joined, name=_readable(path))
    column = _join((*path[:outermost], "*", *path[outermost + 1 :]))
    if outermost == len(path) - 1:
        row = _join((*path[: outermost - 1], f"#{lengths[path[:-1]]}", path[outermost]))
    else:
        row = _join(path[: outermost + 1])
    return replace(variable, column=column, row=row, name=_readable(path))


def _join(path: JsonPath) -> str:
    return "/".join(map(str, path))


def _readable(path: JsonPath) -> str:
    """Write a path for people: `rows[7].x`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part.strip(chr(34))}" for part in path]
    return "".join(parts).lstrip(".")


def _in_python(text: str) -> list[Variable]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    line_starts = [0]
    for line in io.StringIO(text):
        line_starts.append(line_starts[-1] + len(line))

    def offset(position: tuple[int, int]) -> int:
        return line_starts[position[0] - 1] + position[1]

    variables: list[Variable] = []
    layout = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)
    tokens = [token for token in tokens if token.type not in layout]
    for k, token in enumerate(tokens):
        before = tokens[k - 1].string if k else "\n"
        if token.type == tokenize.NUMBER:
            signed = before in ("-", "+") and (k < 2 or _allows_sign(tokens[k - 2]))
            start = offset(tokens[k - 1].start if signed else token.start)
            variable = variable_of_literal(text[start : offset(token.end)], start)
            if variable is not None:
                variables.append(variable)
        elif token.string in BOOLEANS and before in BEFORE_BOOLEAN:
            start, end, value = offset(token.start), offset(token.end), float(token.string == "True")
            variables.append(Variable(start=start, end=end, kind=VariableKind.CHOICE, value=value, choices=BOOLEANS))
    return variables


def _allows_sign(token: tokenize.TokenInfo) -> bool:
    """Return whether a `-` after this token is a sign: after an operand it is a subtraction."""
    return token.type == tokenize.NEWLINE or token.string in BEFORE_SIGN


def _in_text(text: str) -> list[Variable]:
    visible = QUOTED_OR_COMMENT.sub(lambda found: " " * len(found.group()), text)
    numbers = [found for found in TEXT_NUMBER.finditer(visible) if not LEADING_ZERO.match(found.group())]
    variables = [variable_of_literal(found.group(), found.start()) for found in numbers]
    return [variable for variable in variables if variable is not None]


def _lines_as_tables(text: str, variables: list[Variable]) -> list[Variable]:
    """Give rows and columns to the variables of lines: a run of lines of one shape is a table, a lone line a column."""
    lines = [
        (_shape(line, begin, on_line), index, on_line)
        for index, (begin, line, on_line) in enumerate(_lines(text, variables))
    ]
    out: list[Variable] = []
    for _, run in groupby(lines, key=lambda line: line[0]):
        table = list(run)
        first, alone = table[0][1], len(table) == 1
        for _, index, on_line in table:
            for k, variable in enumerate(on_line):
                column = f"line {first}" if alone else f"line {first}/{k}"
                row = f"line {index}/{k}" if alone else f"line {index}"
                name = f"line {index + 1}" + (f", number {k + 1}" if len(on_line) > 1 else "")
                out.append(replace(variable, column=column, row=row, name=name))
    return out


def _shape(line: str, begin: int, variables: list[Variable]) -> str:
    """Return the line with its variables cut out and its blanks removed."""
    pieces, position = [], 0
    for variable in variables:
        pieces.append(line[position : variable.start - begin])
        position = variable.end - begin
    pieces.append(line[position:])
    return "#".join("".join(piece.split()) for piece in pieces).rstrip(",")
