"""What agents have claimed to work on, so that no two work on the same: a note whose head has `claims: <the gap in a
few words>`.

A claim is valid until its author claims something else, claims nothing (`claims:` with an empty value), or marks the
note as superseded.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from workspace.notes import Note

LATEST = 60  # the latest notes, which are read: a claim that is only in an older one counts as done


@dataclass(frozen=True, slots=True)
class Claim:
    """What an agent has claimed to work on. `note`: the name of the note that says so; `created`: when, as ISO-8601 in
    UTC."""

    agent: str
    gap: str
    note: str
    created: str


def claims_of(notes: Iterable[Note]) -> list[Claim]:
    """Return the valid claims in the latest of these notes, the last one of each agent. Oldest first: the older claim
    has precedence."""
    last: dict[str, Note] = {}
    for note in sorted(notes, key=lambda note: (note.created, note.name))[-LATEST:]:
        if note.claims is not None and note.author:
            last.pop(note.author, None)
            last[note.author] = note
    held = (note for note in last.values() if note.claims and not note.superseded_by)
    return [Claim(note.author, note.claims or "", note.name, note.created) for note in held]
