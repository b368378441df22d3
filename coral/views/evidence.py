"""Checks whether the figures in a note agree with the records, and whether the note is still up to date.

A note is *disputed* if a record contradicts one of its figures. It is *stale* if the task has changed since the latest
attempt that it names, or if a later attempt is a new best: for a synthesis any new best, for another note one whose
title names everything that the note is `about`. It is *supported* if a figure agrees, else *unchecked*. A note that
came from another run is *elsewhere*: the attempts of this run are no evidence for it.

Only figures with one possible meaning are compared: `#14 to #17, +0.0123`, the form in which prompts ask for a
difference of two scores; `#17 scores 2.5312`; and the numbers of attempts in the note's head. All other text is
ignored.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from math import isfinite

from attempts.record import Attempt, Direction
from workspace.dead_ends import names
from workspace.notes import Note

_NUMBER = r"\d{1,9}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?"
_DIFFERENCE = re.compile(rf"(?<!\w)#(\d{{1,9}}) to #(\d{{1,9}}),? \(?([+-]{_NUMBER})(?![\d.]*\s*%)")
_SCORE = re.compile(rf"(?<!\w)#(\d{{1,9}}) scores? (-?{_NUMBER})(?![\d.]*\s*%)")
_ATTEMPT = re.compile(r"(?<!\w)#(\d{1,9})\b")
_CHECKED = 30  # figures of each form in one note, and attempts in its head: each may be a record to read

Find = Callable[[int], Attempt | None]


class NoteState(StrEnum):
    """How a note stands to the records."""

    SUPPORTED = "supported"
    DISPUTED = "disputed"
    STALE = "stale"
    UNCHECKED = "unchecked"  # nothing in it can be compared
    ELSEWHERE = "elsewhere"  # it came from another run


@dataclass(frozen=True, slots=True)
class Evidence:
    """`agreeing`: how many of a note's figures the records bear out. `disputed`: each figure that they do not, with
    what they say. `stale`: why it may no longer hold; empty where nothing speaks against it."""

    agreeing: int = 0
    disputed: tuple[str, ...] = ()
    stale: str = ""
    elsewhere: bool = False

    @property
    def state(self) -> NoteState:
        if self.elsewhere:
            return NoteState.ELSEWHERE
        if self.disputed:
            return NoteState.DISPUTED
        if self.stale:
            return NoteState.STALE
        return NoteState.SUPPORTED if self.agreeing else NoteState.UNCHECKED


def check_evidence(note: Note, find: Find, direction: Direction) -> Evidence:
    """Compare the note's figures with the records; `stale` stays empty. `find`: the record of an attempt, None if there
    is none."""
    if note.is_earlier:
        return Evidence(elsewhere=True)
    text = f"{note.title}\n{note.body}"
    found = list(_problems(text, find, direction))
    missing = [f"#{number}: there is no such attempt" for number in note.attempts[:_CHECKED] if find(number) is None]
    disputed = dict.fromkeys([*missing, *(problem for problem in found if problem)])
    return Evidence(sum(not problem for problem in found), tuple(disputed))


def judge(note: Note, find: Find, direction: Direction, epoch: int, new_bests: Sequence[int]) -> Evidence:
    """Compare the note's figures with the records, and find out whether the note is stale. `new_bests`: the attempts of
    the present epoch that were proven to be the best, in the order of their numbers."""
    evidence = check_evidence(note, find, direction)
    if evidence.state in (NoteState.DISPUTED, NoteState.ELSEWHERE):
        return evidence
    return replace(evidence, stale=_stale(note, find, epoch, new_bests))


def as_of(note: Note, find: Find) -> int | None:
    """Return the highest number of an existing attempt that the note names in its head, title or body; None if there is
    none."""
    named = {*note.attempts, *map(int, _ATTEMPT.findall(f"{note.title}\n{note.body}"))}
    return next((number for number in sorted(named, reverse=True)[:_CHECKED] if find(number) is not None), None)


def _stale(note: Note, find: Find, epoch: int, new_bests: Sequence[int]) -> str:
    last = as_of(note, find)
    record = None if last is None else find(last)
    if last is None or record is None:
        return ""
    if record.epoch < epoch:
        return f"the task has changed since #{last}"
    for number in [number for number in new_bests if number > last][:_CHECKED]:
        later = find(number)
        if later is not None and (note.is_synthesis or _is_about(note, later.title)):
            return f"#{number}, which is later, is a new best"
    return ""


def _is_about(note: Note, title: str) -> bool:
    """Whether the title of an attempt names everything in the note's `about`."""
    return bool(note.about) and all(names(title, word) for word in note.about)


def _problems(text: str, find: Find, direction: Direction) -> Iterator[str]:
    """Yield for each figure what is wrong with it; an empty text if it agrees with the records."""
    for match in islice(_DIFFERENCE.finditer(text), _CHECKED):
        first, second = find(int(match[1])), find(int(match[2]))
        if first is None or second is None:
            number = match[1] if first is None else match[2]
            yield f"#{number}: there is no such attempt"
        elif first.score is None or second.score is None or first.epoch != second.epoch:
            yield f"{match[0]}: the records have no such difference"
        else:
            difference = second.score - first.score
            # Where lower is better, a gain may be written with a minus, as a decrease, or with a plus, as a gain.
            signs = (1.0,) if direction is Direction.MAXIMIZE else (1.0, -1.0)
            agrees = any(_is_rounded(match[3], sign * difference) for sign in signs)
            yield "" if agrees else f"{match[0]}: the records say {difference:+.6g}"
    for match in islice(_SCORE.finditer(text), _CHECKED):
        attempt = find(int(match[1]))
        if attempt is None:
            yield f"#{match[1]}: there is no such attempt"
        elif attempt.score is None:
            yield f"{match[0]}: the record has no score"
        else:
            agrees = _is_rounded(match[2], attempt.score)
            yield "" if agrees else f"{match[0]}: the record says {attempt.score:.10g}"


def _is_rounded(stated: str, actual: float) -> bool:
    """Whether the figure `stated` is `actual`, rounded to as many digits as it has. The last digit may be off by one,
    as in a difference of rounded scores."""
    mantissa, _, exponent = stated.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    value, unit = float(stated), float(f"1e{int(exponent or 0) - digits}")  # infinite where a note says 1e400
    return isfinite(value) and isfinite(unit) and abs(value - actual) <= unit * 1.001
