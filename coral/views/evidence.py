"""Checks whether the figures in a note agree with the records, and whether the note is still up to date.

A note is *disputed* if a record contradicts one of its figures. It is *stale* if the task has changed since the latest
attempt that it names, or if a later attempt is a new best: for a synthesis any new best, for another note one whose
title names everything that the note is `about`. It is *supported* if a figure agrees, else *unchecked*. A note that
came from another run is *elsewhere*: the attempts of this run are no evidence for it.

Only figures with one possible meaning are compared: `#14 to #17, +0.0123`, the form in which prompts ask for a
difference of two scores; `#17 scores 2.5312`; and the numbers of attempts in the note's head. All other text is
ignored.

An attempt that was graded several times has several scores, and its median and mean change with each. A figure agrees
with any of those that prompts and commands have shown: a note is older than the grades that came after it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import islice, product
from math import isfinite

from attempts.noise import mean, median
from attempts.record import Attempt, Direction
from workspace.dead_ends import mentions
from workspace.notes import Note

_NUMBER = r"\d{1,20}(?:\.\d{1,25})?(?:[eE][+-]?\d{1,3})?"  # a float has no more digits
_END = r"(?!\.?\d|,\d{3}(?!\d)|[\d.]*\s*%)"  # not within a longer number, as in 1,234; no percentage
_DIFFERENCE = re.compile(rf"(?<!\w)#(\d{{1,9}}) to #(\d{{1,9}}),? \(?([+-]{_NUMBER}){_END}")
_SCORE = re.compile(rf"(?<!\w)#(\d{{1,9}}) scores? (-?{_NUMBER}){_END}")
_ATTEMPT = re.compile(r"(?<!\w)#(\d{1,9})\b")
_CHECKED = 30  # figures of each form in one note, and attempts in its head: each may be a record to read
_GRADES = 50  # of one attempt, the first and the latest: the best of a long run may have thousands

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


class Records:
    """The scores that figures are compared with. `find`: the record of an attempt, None if there is none; `scores`: the
    scores of an attempt and of its confirmations, in the order of publication, empty if none is known."""

    def __init__(self, find: Find, scores: Callable[[int], Sequence[float]], direction: Direction) -> None:
        self.find = find
        self.direction = direction
        self._scores = cache(scores)
        self._shown = cache(self._all_shown)

    def shown(self, attempt: Attempt) -> Sequence[float]:
        """Return all that was ever shown as the score of an attempt: each score, and the median and the mean after each
        grade. In ascending order."""
        return self._shown(attempt.number)

    def median(self, number: int, score: float) -> float:
        """Return the median of an attempt; `score` is its own."""
        return median(self._scores(number) or (score,))

    def _all_shown(self, number: int) -> Sequence[float]:
        record = self.find(number)
        if record is None or record.score is None:
            return ()
        shown = {record.score}
        # Where a list is filtered, a copy stands for the candidate, with the scores of both.
        for scores in (self._scores(of) for of in (number, record.of) if of is not None):
            counts = range(1, len(scores) + 1)
            for count in {*counts[:_GRADES], *counts[-_GRADES:]}:
                grades = scores[:count]
                shown |= {grades[-1], median(grades), mean(grades)}
        return sorted(shown)


def check_evidence(note: Note, records: Records) -> Evidence:
    """Compare the note's figures with the records; `stale` stays empty."""
    if note.is_earlier:
        return Evidence(elsewhere=True)
    text, find = f"{note.title}\n{note.body}", records.find
    found = [*_differences(text, records), *_scores(text, records)]
    missing = [f"#{number}: there is no such attempt" for number in note.attempts[:_CHECKED] if find(number) is None]
    disputed = dict.fromkeys([*missing, *(problem for problem in found if problem)])
    return Evidence(sum(not problem for problem in found), tuple(disputed))


def judge(note: Note, records: Records, epoch: int, new_bests: Sequence[int]) -> Evidence:
    """Compare the note's figures with the records, and find out whether the note is stale. `new_bests`: the attempts of
    the present epoch that were proven to be the best, in the order of their numbers."""
    evidence = check_evidence(note, records)
    if evidence.state in (NoteState.DISPUTED, NoteState.ELSEWHERE):
        return evidence
    return replace(evidence, stale=_stale(note, records.find, epoch, new_bests))


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
    """Return whether the title of an attempt names everything in the note's `about`."""
    return bool(note.about) and all(mentions(title, word) for word in note.about)


def _differences(text: str, records: Records) -> Iterator[str]:
    """Yield for each difference what is wrong with it; an empty text if it agrees with the records."""
    for match in islice(_DIFFERENCE.finditer(text), _CHECKED):
        first, second = records.find(int(match[1])), records.find(int(match[2]))
        if first is None or second is None:
            number = match[1] if first is None else match[2]
            yield f"#{number}: there is no such attempt"
        elif first.score is None or second.score is None or first.epoch != second.epoch:
            yield f"{match[0]}: the records have no such difference"
        elif _is_difference(match[3], first, second, records):
            yield ""
        else:
            difference = records.median(second.number, second.score) - records.median(first.number, first.score)
            yield f"{match[0]}: the records say {difference:+.6g}"


def _is_difference(stated: str, first: Attempt, second: Attempt, records: Records) -> bool:
    """Return whether a note states the difference on which a verdict rests, or that of two scores that were shown."""
    # Where lower is better, a gain may be written with a minus, as a decrease, or with a plus, as a gain.
    signs = (1.0,) if records.direction is Direction.MAXIMIZE else (1.0, -1.0)
    of_verdicts = [
        sign * later.delta
        for later, other, sign in ((second, first, 1.0), (first, second, -1.0))
        if later.delta is not None and later.against == other.number
    ]
    of_scores = (second.score or 0.0) - (first.score or 0.0)
    if any(_is_rounded(stated, sign * difference) for difference in (*of_verdicts, of_scores) for sign in signs):
        return True
    value, before = float(stated), records.shown(first)
    for score, sign in product(records.shown(second), signs):
        at = bisect_left(before, score - sign * value)
        if any(_is_rounded(stated, sign * (score - other)) for other in before[max(0, at - 1) : at + 1]):
            return True
    return False


def _scores(text: str, records: Records) -> Iterator[str]:
    """Yield for each score what is wrong with it; an empty text if it agrees with the records."""
    for match in islice(_SCORE.finditer(text), _CHECKED):
        attempt = records.find(int(match[1]))
        if attempt is None:
            yield f"#{match[1]}: there is no such attempt"
        elif attempt.score is None:
            yield f"{match[0]}: the record has no score"
        elif _is_rounded(match[2], attempt.score) or any(
            _is_rounded(match[2], score) for score in records.shown(attempt)
        ):
            yield ""
        else:
            yield f"{match[0]}: the record says {records.median(attempt.number, attempt.score):.10g}"


def _is_rounded(stated: str, actual: float) -> bool:
    """Return whether the figure `stated` is `actual`, rounded to as many digits as it has. The last digit may be off by
    one, as in a difference of rounded scores."""
    mantissa, _, exponent = stated.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    value, unit = float(stated), float(f"1e{int(exponent or 0) - digits}")  # infinite where a note says 1e400
    return isfinite(value) and isfinite(unit) and abs(value - actual) <= unit * 1.001
