"""The inbox of an agent as the agent writes it: the ids of submissions, and the file of a submission.

`coral eval` imports this before it writes the submission, and the module of records only after that: importing it takes
10 ms, in which the supervisor works already.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from attempts.fields import SUBMISSION_ID
from attempts.files import write_json

_LAST_ID = "9" * 20


def next_id(last: str) -> str:
    """Return an id later than `last`, even if the wall clock was set back."""
    floor = int(last) + 1 if SUBMISSION_ID.fullmatch(last) and last < _LAST_ID else 0
    return f"{max(time.time_ns(), floor):020d}"


def submission_ids(root: Path, agent: str) -> list[str]:
    """Return the ids of what this agent submitted, oldest first: of submissions that were answered, and of those that
    wait."""
    names: set[str] = set()
    for folder in (root / "replies" / agent, root / "inbox" / agent):
        try:
            with os.scandir(folder) as entries:
                names.update(entry.name[:-5] for entry in entries if entry.name.endswith(".json"))
        except OSError:
            continue
    return sorted(name for name in names if SUBMISSION_ID.fullmatch(name))


def submit(root: Path, submission: Mapping[str, object]) -> Path:
    """Write a submission, whose keys are the fields of `attempts.record.Submission`. When this returns it is in the
    inbox, and survives a loss of power. FileExistsError if there is one with this id."""
    path = root / "inbox" / str(submission["agent"]) / f"{submission['id']}.json"
    # By a link and not a rename: watchdog may read a rename as two events, and then reports it 0.5 s late.
    write_json(path, submission, durable=True, new=True)
    return path
