"""Spots: the places of a text that may be varied. Everything between them is kept byte for byte.

A spot is a real number, an integer, or a choice between a few words. A spot whose value is not changed keeps the
very characters it was read from; a changed real is written so that it reads back as the same number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf, isfinite

LARGEST = 1e15  # integers beyond are identifiers or hashes, not quantities


class Kind(StrEnum):
    REAL = "real"
    INTEGER = "integer"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place. `value` is the number, or the index into `words`; spots of one `column` are alike."""

    start: int
    end: int
    kind: Kind
    value: float
    words: tuple[str, ...] = ()
    column: str = ""
    row: str = ""  # spots of one row describe one thing
    name: str = ""  # where it stands, for people
    low: float = -inf
    high: float = inf

    def write(self, value: float) -> str:
        """The text for another value; integers and choices are rounded to what they can be."""
        if self.kind is Kind.CHOICE:
            return self.words[min(max(round(value), 0), len(self.words) - 1)]
        return str(round(value)) if self.kind is Kind.INTEGER else repr(float(value))


@dataclass(frozen=True, slots=True)
class Comment:
    """What a line's comment says of the spots on that line: `# fixed`, `# range: 0..1`, `# choices: a, b, c`."""

    fixed: bool = False
    low: float = -inf
    high: float = inf
    words: tuple[str, ...] = ()

    @classmethod
    def read(cls, line: str) -> Comment:
        found = _COMMENT.search(line)
        if found is None:
            return cls()
        if found["choices"] is not None:
            words = tuple(word.strip() for word in found["choices"].split(",") if word.strip())
            return cls(words=words) if len(words) > 1 else cls()
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


def number(text: str, start: int) -> Spot | None:
    """The spot for a literal, or none where it is not one we could write back."""
    plain = text.replace("_", "")
    real = any(mark in plain for mark in ".eE")
    try:
        value = float(plain)
    except ValueError:
        return None
    if not isfinite(value) or (not real and abs(value) > LARGEST):
        return None
    return Spot(start=start, end=start + len(text), kind=Kind.REAL if real else Kind.INTEGER, value=value)


def heed_comments(text: str, spots: Iterable[Spot]) -> list[Spot]:
    """Apply what the comments say. A line with `choices` offers one spot: the first of the words it holds."""
    out: list[Spot] = []
    begin = 0
    waiting = sorted(spots, key=lambda spot: spot.start)
    for line in text.splitlines(keepends=True):
        end = begin + len(line)
        here = [spot for spot in waiting if begin <= spot.start < end]
        out.extend(_of_line(line, begin, here))
        begin = end
    return out


def _of_line(line: str, begin: int, spots: list[Spot]) -> list[Spot]:
    comment = Comment.read(line)
    if comment.fixed:
        return []
    if comment.words:
        spot = _choice(line, begin, comment.words)
        return [spot] if spot else []
    return [
        replace(spot, low=max(spot.low, comment.low), high=min(spot.high, comment.high))
        for spot in spots
        if spot.kind is not Kind.CHOICE or comment.low == -inf
    ]


def _choice(line: str, begin: int, words: tuple[str, ...]) -> Spot | None:
    """The word on the line, left of the comment, that is one of the choices."""
    code = line[: _COMMENT.search(line).start()]  # type: ignore[union-attr]
    longest_first = sorted(range(len(words)), key=lambda k: -len(words[k]))
    for index in longest_first:
        at = re.search(rf"(?<![\w.]){re.escape(words[index])}(?![\w.])", code)
        if at:
            start = begin + at.start()
            return Spot(start=start, end=start + len(words[index]), kind=Kind.CHOICE, value=index, words=words)
    return None


def same_kind(spots: Sequence[Spot]) -> list[Spot]:
    """A column that holds one real holds reals: an integer among them was merely written without a point."""
    reals = {spot.column for spot in spots if spot.kind is Kind.REAL and spot.column}
    return [
        replace(spot, kind=Kind.REAL) if spot.kind is Kind.INTEGER and spot.column in reals else spot for spot in spots
    ]
