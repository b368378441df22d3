"""What agents have taken up, so that no two take the same: a note whose head has `claims: <the gap in a few words>`.

A claim is its author's until that agent claims something else, claims nothing (`claims:` with nothing behind it), or
marks the note as superseded.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from workspace.notes import Note

LATEST = 60  # notes that are looked at: what was claimed before them, and not since, is taken for done


@dataclass(frozen=True, slots=True)
class Claim:
    """`note`: the name of the note that makes it; `created`: when, as ISO-8601 in UTC."""

    agent: str
    gap: str
    note: str
    created: str


def claims_of(notes: Iterable[Note]) -> list[Claim]:
    """The claims that the latest of these notes make, of each agent the last one; the oldest first, which goes before
    the others."""
    last: dict[str, Note] = {}
    for note in sorted(notes, key=lambda note: (note.created, note.name))[-LATEST:]:
        if note.claims is not None and note.author:
            last.pop(note.author, None)
            last[note.author] = note
    held = (note for note in last.values() if note.claims and not note.superseded_by)
    return [Claim(note.author, note.claims or "", note.name, note.created) for note in held]
