"""The search space: all variables of the editable files as one vector.

Only this module turns vectors into texts and texts into vectors. A text of the same form (another agent's version of
the same files) reads as a point of the same space.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import chain, islice
from math import inf, isfinite
from random import Random

from coral.public_check.candidate import Texts
from coral.search_space.declarations import Declaration, declared_variables
from coral.search_space.variables import VariableKind

MOST_VARIABLES = 3000
SMALL_SPREAD = 0.05  # of their size: if values spread less, their spread does not show how much they may vary
RANGE_MARGIN = 0.12  # of the spread of a column's values, beyond the lowest and the highest
WIDE = 100.0  # times the range of the values seen: wider declared bounds may not show where good values are
DECLARED = 0.5  # of the episodes move within declared bounds, however wide; the others near the values seen
MAGNITUDES = 100.0  # times its lowest value: an interval that is wider is drawn from by magnitude
MOST_CODES = 16  # different integers in a column; if there are more, they are amounts
DESCRIBED = 3  # changed values that a description names

Vector = list[float]


def spans_magnitudes(low: float, high: float) -> bool:
    """Return whether numbers of this interval differ by factors, as rates do, and not by amounts."""
    return 0.0 < low < high / MAGNITUDES


def grouped(keys: Iterable[Hashable]) -> list[list[int]]:
    """Return the positions of each key, in the order in which the keys first appear."""
    groups = defaultdict[Hashable, list[int]](list)
    for position, key in enumerate(keys):
        groups[key].append(position)
    return list(groups.values())


def changed(point: Vector, values: Iterable[tuple[int, float]]) -> Vector:
    """Return the point with these variables at other values."""
    out = list(point)
    for k, value in values:
        out[k] = value
    return out


class EditableFile:
    """One editable file: its variables, and the text between them."""

    def __init__(self, name: str, text: str, declared: Sequence[Declaration] = ()) -> None:
        self.name, self.declared = name, declared
        self.variables = declared_variables(name, text, declared)
        self._literals = [text[variable.start : variable.end] for variable in self.variables]
        # The pieces of the text last written, and the values they stand for: few change from one text to the next. Each
        # second piece is a variable's, the others stay.
        self._values = [variable.value for variable in self.variables]
        self._pieces: list[str] = []
        position = 0
        for variable, literal in zip(self.variables, self._literals, strict=True):
            self._pieces += [text[position : variable.start], literal]
            position = variable.end
        self._pieces.append(text[position:])

    @property
    def form(self) -> list[str]:
        """The pieces of the text between the variables: one before each variable, and one after the last."""
        return self._pieces[::2]

    def text(self, values: Sequence[float]) -> str:
        """Return the text for these values; variables at their original value keep their original characters."""
        for k, value in enumerate(values):
            if value != self._values[k]:
                variable, self._values[k] = self.variables[k], value
                self._pieces[2 * k + 1] = self._literals[k] if value == variable.value else variable.text(value)
        return "".join(self._pieces)

    def values(self, text: str) -> Vector | None:
        """Return the values in a text of the same form; None if its form differs."""
        other = EditableFile(self.name, text, self.declared)
        if other.form != self.form:
            return None
        pairs = zip(self.variables, other._literals, strict=True)
        values = [value for variable, literal in pairs if (value := variable.read(literal)) is not None]
        return values if len(values) == len(self.variables) else None


class SearchSpace:
    def __init__(self, texts: Mapping[str, str], declared: Sequence[Declaration] = ()) -> None:
        files = [EditableFile(name, text, declared) for name, text in sorted(texts.items())]
        self.files = [file for file in files if file.variables]
        self.variables = [variable for file in self.files for variable in file.variables]
        placed = [(file.name, variable) for file in self.files for variable in file.variables]
        several = len(self.files) > 1
        self.names = [f"{name}: {variable.name}" if several else variable.name for name, variable in placed]
        self.columns = grouped((name, variable.column, variable.kind, variable.choices) for name, variable in placed)
        rows = grouped((name, variable.row) for name, variable in placed)
        self.codes = [self._codes_of(column) for column in self.columns]
        groups = grouped((name, variable.permutation) for name, variable in placed)
        # Of each, its variables in the order in which they stand.
        self.permutations = [group for group in groups if self.variables[group[0]].permutation]
        self.permutation_of = {k: group for group in self.permutations for k in group}
        self.reals = [k for k, variable in enumerate(self.variables) if variable.kind is VariableKind.REAL]
        self.discrete = [k for k, variable in enumerate(self.variables) if variable.kind is not VariableKind.REAL]
        self._is_free = not self.discrete and all(
            -inf == variable.low and variable.high == inf for variable in self.variables
        )
        self.column_of = {k: number for number, members in enumerate(self.columns) for k in members}
        tables = grouped(tuple(self.column_of[k] for k in row) for row in rows)
        self.tables = [[rows[n] for n in table] for table in tables if len(table) > 1]  # rows of the same columns

    def __len__(self) -> int:
        return len(self.variables)

    @property
    def start(self) -> Vector:
        return [variable.value for variable in self.variables]

    @property
    def form(self) -> list[tuple[str, list[str]]]:
        """The name of each file, and its text without the variables."""
        return [(file.name, file.form) for file in self.files]

    def texts(self, vector: Sequence[float]) -> Texts:
        values = iter(vector)
        return {file.name: file.text(list(islice(values, len(file.variables)))) for file in self.files}

    def vector(self, texts: Mapping[str, str]) -> Vector | None:
        """Return the point that other texts of the same files stand for; None if they have another form."""
        read = (file.values(texts.get(file.name, "")) for file in self.files)
        found = [values for values in read if values is not None]
        return list(chain(*found)) if len(found) == len(self.files) else None

    def clip(self, vector: Sequence[float]) -> Vector:
        """Return the nearest point within the declared bounds. Integers and choices become whole; the variables of a
        permutation get its values, in the order that the vector gives them."""
        if self._is_free:
            return list(vector)
        out = []
        for variable, value in zip(self.variables, vector, strict=True):
            last = len(variable.choices) - 1.0
            low, high = (0.0, last) if variable.choices else (variable.low, variable.high)
            value = min(max(value, low), high)
            out.append(value if variable.kind is VariableKind.REAL else float(round(value)))
        for group in self.permutations:
            in_order = sorted(group, key=lambda k: vector[k])
            for k, value in zip(in_order, sorted(self.variables[k].value for k in group), strict=True):
                out[k] = value
        return out

    def takes_declared(self, random: Random) -> bool:
        """Return whether moves take the declared bounds for the range this time: sometimes, where there are any."""
        is_ranged = any(isfinite(variable.high - variable.low) for variable in self.variables)
        return is_ranged and random.random() < DECLARED

    def scales(self, points: Sequence[Vector], *, declared: bool = False) -> Vector:
        """Return how much each variable typically varies: the spread of its column, or its size if all values are much
        alike. `declared`: the width of its bounds, if it has two of about one magnitude."""
        out = []
        for variable, (low, high) in zip(self.variables, self._seen(points), strict=True):
            spread, size = high - low, max(abs(low), abs(high))
            scale = spread if spread > SMALL_SPREAD * size else size or 1.0
            width = variable.high - variable.low
            if declared and isfinite(width) and not spans_magnitudes(variable.low, variable.high):
                scale = width
            out.append(min(scale, width) if width > 0 else scale)
        return out

    def ranges(self, points: Sequence[Vector], *, declared: bool = False) -> list[tuple[float, float]]:
        """Return the interval to search for each variable, as (lowest, highest). That is its declared bounds. If these
        are missing, or very wide and `declared` is false, it is the range of its column's values in these points, with
        a margin on both sides."""
        out = []
        for variable, (low, high) in zip(self.variables, self._seen(points), strict=True):
            margin = RANGE_MARGIN * (high - low) or 0.5 * max(abs(low), abs(high)) or 1.0
            width = variable.high - variable.low
            if width <= WIDE * (high - low + 2 * margin) or (declared and isfinite(width)):
                out.append((variable.low, variable.high))
            else:
                out.append((max(variable.low, low - margin), min(variable.high, high + margin)))
        return out

    def _codes_of(self, column: Sequence[int]) -> list[float]:
        """Return the values of a column's integers if these may be codes, such as bits, colours or machines. Most
        checks reject any other value. Return an empty list if they are too many, or there is one integer."""
        integers = [self.variables[k] for k in column if self.variables[k].kind is VariableKind.INTEGER]
        values = {variable.value for variable in integers}
        codes = {0.0, 1.0} if values <= {0.0, 1.0} else values  # bits may begin with the same value
        return sorted(codes) if len(integers) > 1 and len(codes) <= MOST_CODES else []

    def _seen(self, points: Sequence[Vector]) -> list[tuple[float, float]]:
        """Return, for each variable, the lowest and the highest value of its column in these points."""
        seen: dict[int, tuple[float, float]] = {}
        for members in self.columns:
            values = [point[k] for point in points for k in members]
            seen |= dict.fromkeys(members, (min(values), max(values)))
        return [seen[k] for k in range(len(self))]

    def describe_change(self, before: Vector, after: Vector) -> str:
        """Say what differs between two points: how many values, and the largest differences by name."""
        scales = self.scales([before])
        changed = [k for k in range(len(self)) if before[k] != after[k]]
        changed.sort(key=lambda k: -abs(after[k] - before[k]) / scales[k])
        described = [f"{self.names[k]} {self._changed(k, before[k], after[k])}" for k in changed[:DESCRIBED]]
        rest = f"; and {len(changed) - DESCRIBED} more" if len(changed) > DESCRIBED else ""
        text = f"{len(changed)} of {len(self)} values differ; most of all {'; '.join(described)}{rest}"
        return text if changed else "nothing differs"

    def _changed(self, k: int, before: float, after: float) -> str:
        """Write two values of a variable with as many digits as it takes to tell them apart."""
        if choices := self.variables[k].choices:
            return f"{choices[round(before)]} -> {choices[round(after)]}"
        texts = ((f"{before:.{digits}g}", f"{after:.{digits}g}") for digits in (5, 8, 12, 17))
        return " -> ".join(next(pair for pair in texts if pair[0] != pair[1]))
