"""The inbox of an agent as the agent writes it: the ids of submissions, and a submission's file.

`coral eval` imports this before the submission is written, and records only after: they take 10 ms, in which the
supervisor is at work by then.
"""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from attempts.fields import SUBMISSION_ID
from attempts.files import write_json

_LAST_ID = "9" * 20


def next_id(last: str) -> str:
    """An id later than `last`, whatever the wall clock does meanwhile."""
    floor = int(last) + 1 if SUBMISSION_ID.fullmatch(last) and last < _LAST_ID else 0
    return f"{max(time.time_ns(), floor):020d}"


def submission_ids(root: Path, agent: str) -> list[str]:
    """The ids of what this agent submitted, oldest first: of what was answered and of what waits."""
    names: set[str] = set()
    for folder in (root / "replies" / agent, root / "inbox" / agent):
        try:
            with os.scandir(folder) as entries:
                names.update(entry.name[:-5] for entry in entries if entry.name.endswith(".json"))
        except OSError:
            continue
    return sorted(name for name in names if SUBMISSION_ID.fullmatch(name))


def submit(root: Path, submission: Mapping[str, object]) -> Path:
    """Write a submission, by the fields of `attempts.record.Submission`. It is in the inbox when this returns, and
    survives a loss of power. FileExistsError where one of its id is there."""
    path = root / "inbox" / str(submission["agent"]) / f"{submission['id']}.json"
    # By a link and not a rename: watchdog may read a rename as two events, and then reports it 0.5 s late.
    write_json(path, submission, durable=True, new=True)
    return path
