"""Finds notes that contradict each other as long as no attempt has decided which one is right.

A note names in `contradicts` the notes that it contradicts, and in `decided_by` attempts that decide the question. Such
an attempt decides if it has a score and a higher number than every attempt that either note rests on. A superseded note
contradicts nothing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coral.views.evidence import Find
from workspace.notes import Note


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two notes that contradict each other. `why`: why an attempt named in `decided_by` does not decide; empty if none
    is named."""

    claim: Note
    other: Note
    why: str = ""


def open_conflicts(
    related: Sequence[Note], named: Sequence[Note], superseded: Collection[str], find: Find
) -> list[Conflict]:
    """Return the undecided conflicts, each pair of notes once. `related`: the notes whose `contradicts` is read;
    `named`: the notes that these name, perhaps among others; `superseded`: names of superseded notes; `find`: the
    record of an attempt, None if there is none."""
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
    """Return the conflict of two notes; None if an attempt has decided it."""
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
