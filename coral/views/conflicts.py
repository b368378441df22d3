"""Claims of notes that contradict each other, until an attempt decides between them.

A note names in `contradicts` those that say otherwise, and in `decided_by` the attempt that decides. An attempt decides
if it has a score and is later than every attempt that the two rest on; a note that is superseded claims nothing more.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coral.views.evidence import Find
from workspace.notes import Note


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two claims. `why`: why the attempt that is said to decide does not; empty where none is named."""

    claim: Note
    other: Note
    why: str = ""


def open_conflicts(
    related: Sequence[Note], named: Sequence[Note], superseded: Collection[str], find: Find
) -> list[Conflict]:
    """`related`: the notes that may contradict others; `named`: those others, and more."""
    by_name = {note.name: note for note in named}
    found: dict[frozenset[str], Conflict] = {}
    for claim in related:
        for other in (by_name[name] for name in claim.contradicts if name in by_name and name != claim.name):
            both = frozenset((claim.name, other.name))
            if both & set(superseded) or both in found:
                continue
            if (conflict := _conflict(claim, other, find)) is not None:
                found[both] = conflict
    return list(found.values())


def _conflict(claim: Note, other: Note, find: Find) -> Conflict | None:
    """None where an attempt has decided it."""
    rests_on = max((*claim.attempts, *other.attempts), default=-1)
    why = ""
    for number in sorted({*claim.decided_by, *other.decided_by}):
        record = find(number)
        if record is None:
            why = f"#{number} does not exist"
        elif number <= rests_on:
            why = f"#{number} is no later than what they rest on"
        elif record.score is None:
            why = f"#{number} has no score"
        else:
            return None
    return Conflict(claim, other, why)
