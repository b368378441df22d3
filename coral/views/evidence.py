"""Whether the figures that a note states agree with the records.

Only what cannot be read in two ways is compared: `#14 to #17, +0.0123`, the form in which prompts ask for a difference
of two scores, `#17 scores 2.5312`, and the numbers of attempts in the note's head. Everything else is prose, of which
nothing is said.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from attempts.record import Attempt, Direction
from workspace.notes import Note

_NUMBER = r"\d{1,9}(?:\.\d{1,17})?(?:[eE][+-]?\d{1,3})?"
_DIFFERENCE = re.compile(rf"#(\d{{1,9}}) to #(\d{{1,9}}),? \(?([+-]{_NUMBER})(?![\d.]*\s*%)")
_SCORE = re.compile(rf"#(\d{{1,9}}) scores? (-?{_NUMBER})(?![\d.]*\s*%)")
_CHECKED = 30  # figures of each form in one note, and attempts in its head: each may be a record to read

Find = Callable[[int], Attempt | None]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`agreeing`: how many of a note's figures the records bear out. `disputed`: each figure that they do not, with
    what they say."""

    agreeing: int = 0
    disputed: tuple[str, ...] = ()


def check_evidence(note: Note, find: Find, direction: Direction) -> Evidence:
    """`find`: the record of an attempt, None if there is none."""
    text = f"{note.title}\n{note.body}"
    found = list(_problems(text, find, direction))
    missing = [f"#{number}: there is no such attempt" for number in note.attempts[:_CHECKED] if find(number) is None]
    disputed = dict.fromkeys([*missing, *(problem for problem in found if problem)])
    return Evidence(sum(not problem for problem in found), tuple(disputed))


def _problems(text: str, find: Find, direction: Direction) -> Iterator[str]:
    """For each figure what is wrong with it; empty if it agrees."""
    for match in islice(_DIFFERENCE.finditer(text), _CHECKED):
        first, second = find(int(match[1])), find(int(match[2]))
        if first is None or second is None:
            number = match[1] if first is None else match[2]
            yield f"#{number}: there is no such attempt"
        elif first.score is None or second.score is None or first.epoch != second.epoch:
            yield f"{match[0]}: the records have no such difference"
        else:
            difference = second.score - first.score
            # Where lower is better, a gain may be written as what it is, a decrease, or with a plus.
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
    """Whether a figure is the actual one, to the digits that it has; the last may be off by one, as in a difference of
    rounded scores."""
    mantissa, _, exponent = stated.lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - digits)
    return abs(float(stated) - actual) <= unit * 1.001
