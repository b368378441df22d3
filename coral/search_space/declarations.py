"""Finds the variables of a file and the values that each of them may have.

Comments and tasks declare these values. A comment applies to the variables of its line: `# range: 0..1`,
`# choices: a, b`, `# fixed`. A task declares a variable by its name: `kernel: rbf | laplace`, `rate: 0.001 .. 1`,
`order: permutation`, `n: fixed`. That applies to every value that an editable file assigns to the name (`name: ...`,
`name = ...`), and to each element of a list; it takes precedence over a comment. A list of integers needs no
declaration if it has only bits, or each integer of a range once: the latter is a permutation.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, floor, inf, isfinite

from coral.search_space.variables import Variable, VariableKind, arrange_lines, choice, find_variables, lines

FEWEST = 8  # integers that a list must have to be recognised as bits or as a permutation
PERMUTATION, FIXED = "permutation", "fixed"
BITS = ((0.0, 1.0), (-1.0, 1.0))
CLOSING = {"[": "]", "(": ")", "{": "}"}
END_OF_SCALAR = re.compile(r"[,;}\])#\n]")
COMMENT = re.compile(
    r"(?:#|//|;)\s*(?:fixed\b|range:\s*(?P<range>[^\s.]\S*?\s*\.\.\s*\S+)|choices:\s*(?P<choices>.+?)[\s,]*(?:\*/)?\s*$)"
)


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
    low, _, high = text.partition("..")
    with suppress(ValueError):
        if float(low) < float(high):
            return Declaration(name=name, low=float(low), high=float(high))
    raise ValueError(f"the variable {name} must be `a | b`, `low .. high`, {PERMUTATION} or {FIXED}; got {text!r}")


def declared_variables(name: str, text: str, declared: Iterable[Declaration]) -> list[Variable]:
    """Return the variables of a file in the order of its text, with the kinds and bounds that comments and declarations
    give them. A variable that is the only one of its permutation is left out: it can be exchanged with no other."""
    out = find_variables(name, text)
    if not name.endswith(".json"):
        commented = [_apply_comment(text, *line) for line in lines(text, out)]
        out = arrange_lines(text, [variable for on_line in commented for variable in on_line])
    for declaration in declared:
        for start, end in _assigned(text, declaration.name):
            inside = [variable for variable in out if start <= variable.start < end]
            out = [variable for variable in out if not start <= variable.start < end]
            out += _declare(text, start, end, inside, declaration)
    sizes = Counter(variable.permutation for variable in out if variable.permutation)
    columns: dict[str, list[Variable]] = {}
    for variable in out:
        if sizes[variable.permutation] != 1:
            columns.setdefault(variable.column, []).append(variable)
    recognised = [variable for column in columns.values() for variable in _recognised(column)]
    return sorted(map(_round_bounds, recognised), key=lambda variable: variable.start)


def _round_bounds(variable: Variable) -> Variable:
    """Return the variable with whole numbers within its bounds as bounds if it is an integer."""
    if variable.kind is not VariableKind.INTEGER:
        return variable
    low, high = variable.low, variable.high
    return replace(variable, low=ceil(low) if isfinite(low) else low, high=floor(high) if isfinite(high) else high)


def _apply_comment(text: str, begin: int, line: str, variables: list[Variable]) -> list[Variable]:
    """Return the variables of a line as its comment declares them. A comment that cannot be parsed changes nothing. A
    line with `choices` has one variable: the first word on it that is one of them."""
    found = COMMENT.search(line)
    if found is None:
        return variables
    try:
        declared = _read("", found["range"] or (found["choices"] or FIXED).replace(",", "|"))
    except ValueError:
        return variables
    changed = _declare(text, begin, begin + found.start(), variables, declared)
    return changed[:1] if declared.choices else changed


def _assigned(text: str, name: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each value that the text assigns to a name."""
    for match in re.finditer(rf"""(?<![\w.])(["']?){re.escape(name)}\1\s*[:=](?!=)[ \t]*""", text):
        start = match.end()
        first = text[start : start + 1]
        if first in CLOSING:
            end = _end_of_brackets(text, start)
        elif first in ("'", '"'):
            end = text.find(first, start + 1)
        else:
            mark = END_OF_SCALAR.search(text, start)
            end = mark.start() if mark else -1
        yield start, end if end >= 0 else len(text)


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
        return _choices(text, start, end, declared)
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


def _choices(text: str, start: int, end: int, declared: Declaration) -> list[Variable]:
    """Return a variable for each declared word between `start` and `end`. If every declared word is one letter, and the
    text there has only these letters, return a variable for each letter of it."""
    words = sorted(declared.choices, key=len, reverse=True)
    one_of = "|".join(map(re.escape, words))
    letters = len(words[0]) == 1 and re.fullmatch(rf"""["']?(?:{one_of})+["']?""", text[start:end].strip())
    pattern = one_of if letters else rf"(?<![\w.+-])(?:{one_of})(?![\w.])"
    column = f"{declared.name} at {start}"
    return [
        choice(
            match.group(),
            match.start(),
            declared.choices,
            column=column,
            row=f"{column}/{number}",
            name=f"{declared.name}[{number}]" if number else declared.name,
        )
        for number, match in enumerate(re.compile(pattern).finditer(text, start, end))
    ]


def _recognised(column: list[Variable]) -> list[Variable]:
    """Return the variables of a column with the kinds that their values show. If one of them is real, all are: an
    integer among reals is a real that was written without a point. Integers that are all bits become choices. Integers
    that are each number of a range once become a permutation."""
    if any(variable.kind is VariableKind.REAL for variable in column):
        return [v if v.choices or v.permutation else replace(v, kind=VariableKind.REAL) for v in column]
    declared = any(v.choices or v.permutation or isfinite(v.low) or isfinite(v.high) for v in column)
    values = sorted({variable.value for variable in column})
    if declared or len(column) < FEWEST:
        return column
    if tuple(values) in BITS:
        words, kind = tuple(str(round(value)) for value in values), VariableKind.CHOICE
        return [replace(v, kind=kind, value=float(values.index(v.value)), choices=words) for v in column]
    if len(values) == len(column) and values[0] in (0.0, 1.0) and values[-1] - values[0] == len(values) - 1:
        return [replace(variable, permutation=variable.column) for variable in column]
    return column
