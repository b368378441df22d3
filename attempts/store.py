"""The attempts folder: submissions come in, records go out.

Every file has one owner: agents write `inbox/<agent>/`, everything else is the supervisor's. Nothing in an inbox is
believed: a file there is a submission, or `Malformed` with the reason, and never anything worse.
"""

import os
import re
import time
from collections.abc import Collection
from pathlib import Path

from attempts.files import (
    Listings,
    Witness,
    hidden,
    is_plain_file,
    is_plain_folder,
    parse_object,
    read_bytes,
    witness,
    write_json,
)
from attempts.record import (
    SUBMISSION_ID,
    Attempt,
    Submission,
    attempt_from_dict,
    submission_from_dict,
    to_dict,
)

SUBMISSION_BYTES = 64 * 1024
REPLIES = 1_000  # to one agent that are kept; each `coral eval` lists them
MAX_NAMES = 5_000  # of one folder that are looked at; the others are seen when these are gone
_LAST_ID = "9" * 20
_REPLY = re.compile(rf"{SUBMISSION_ID.pattern}\.json")
_RECORD = re.compile(r"[0-9]{6}\.json|[1-9][0-9]{6,11}\.json")


class StoreError(Exception):
    """The attempts folder cannot do what was asked; the hint says what may help."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class Missing(StoreError):  # noqa: N818
    """There is no such attempt."""


class Malformed(StoreError):  # noqa: N818
    """A file that is not what it should be. The message is the reason."""


class Conflict(StoreError):  # noqa: N818
    """Something else is already there under this name."""


class Store:
    """The folder `attempts/` of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listings = Listings()

    # What agents hand in.

    @staticmethod
    def next_id(last: str) -> str:
        """An id for the next submission: later than `last`, whatever the wall clock does meanwhile."""
        floor = int(last) + 1 if SUBMISSION_ID.fullmatch(last) and last < _LAST_ID else 0
        return f"{max(time.time_ns(), floor):020d}"

    def submit(self, submission: Submission) -> Path:
        """Hand in a submission. It is in the inbox when this returns, and survives a loss of power."""
        path = self._waiting(submission.agent, submission.id)
        try:
            # By a link and not a rename: of a rename whose halves it reads apart, watchdog tells half a second late.
            write_json(path, to_dict(submission), durable=True, new=True)
        except FileExistsError:
            hint = "submit again"
            raise Conflict(f"cannot submit {submission.id}: it is in the inbox already", hint) from None
        return path

    def inbox(self, most: int | None = None, only: Collection[Path] | None = None) -> list[tuple[str, str, Path]]:
        """What waits, oldest first: agent, id, path. Files whose name is no id are listed too, to be discarded.

        At most so many of each agent, however many lie there: nobody is starved by an agent that floods its inbox.
        `only`: the agents' folders to look into, where it is known that nothing came into the others.
        """
        waiting: list[tuple[str, str, Path]] = []
        root = self.root / "inbox"
        if only is None or root in only:
            folders = self._listings.entries(root, is_plain_folder, MAX_NAMES)
        else:
            folders = [folder_of_agent for folder_of_agent in only if folder_of_agent.parent == root]
        for folder in folders:
            own = sorted(self._listings.entries(folder, _is_submission, MAX_NAMES))
            waiting += [(path.stem, folder.name, path) for path in own[:most]]
        return [(agent, name, path) for name, agent, path in sorted(waiting)]

    def read_submission(self, agent: str, path: Path) -> Submission:
        """What an agent handed in, or Malformed. An OSError means that this machine is in trouble, not the file."""
        try:
            submission = submission_from_dict(parse_object(read_bytes(path, SUBMISSION_BYTES)), agent)
        except FileNotFoundError:
            raise Malformed("it is gone", "submit with `coral eval`") from None
        except ValueError as error:
            raise Malformed(str(error), "submit with `coral eval`") from None
        if submission.id != path.stem:
            raise Malformed("id: is not the name of the file", "submit with `coral eval`")
        return submission

    def clear(self, agent: str, submission_id: str) -> None:
        """Forget a submission that was taken up."""
        self.discard(self._waiting(agent, submission_id))

    def discard(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    # What the supervisor answers.

    def reply(self, agent: str, submission_id: str, data: dict[str, object]) -> None:
        """Answer the `coral eval` that waits. Not fsynced: it is a message; the record is the truth."""
        write_json(self._reply(agent, submission_id), data, durable=False)

    def read_reply(self, agent: str, submission_id: str) -> dict[str, object] | None:
        path = self._reply(agent, submission_id)
        try:
            return parse_object(read_bytes(path))
        except (FileNotFoundError, ValueError):
            return None

    def forget_replies(self, agent: str) -> None:
        """Remove an agent's oldest replies. Whoever still asks for such an attempt finds its record."""
        folder = self.root / "replies" / agent
        if folder.is_symlink() or not folder.is_dir():
            return  # what is taken away there is never somebody else's
        names = [name for name in os.listdir(folder) if _REPLY.fullmatch(name)]  # noqa: PTH208 - at each attempt
        for name in sorted(names)[:-REPLIES]:
            (folder / name).unlink(missing_ok=True)

    # Records.

    def publish(self, attempt: Attempt) -> Path | None:
        """Make the file of a record say what the record is, for good; where it does already, nothing happens.

        Whatever else was in its place is kept in the folder under a hidden name, which is returned.
        """
        data = to_dict(attempt)
        settled = attempt_from_dict(data)
        path, aside = self._record(attempt.number), None
        try:
            if self.read(attempt.number) == settled:
                return None
            aside = self._keep(path)
        except Missing:
            pass
        except Malformed:
            aside = self._keep(path)
        write_json(path, data, durable=True)
        return aside

    def set_aside(self, number: int) -> Path:
        """Take a file out of the place of a record that nobody published; it stays under a hidden name."""
        path = self._record(number)
        aside = hidden(path)
        path.rename(aside)
        return aside

    def witness(self, number: int) -> Witness | None:
        """What a change of the file would change; None where there is no file."""
        return witness(self._record(number))

    def _keep(self, path: Path) -> Path:
        """Another name for a file that is about to be replaced, so that its place is never empty."""
        aside = hidden(path)
        try:
            os.link(path, aside, follow_symlinks=False)
        except OSError:
            path.rename(aside)  # a folder, or a file system without links
        return aside

    def read(self, number: int) -> Attempt:
        path = self._record(number)
        try:
            attempt = attempt_from_dict(parse_object(read_bytes(path)))
        except FileNotFoundError:
            raise Missing(f"cannot read attempt #{number}: there is none", "`coral log` lists them") from None
        except ValueError as error:
            raise Malformed(f"cannot read attempt #{number}: {error}", f"see {path}") from None
        if attempt.number != number:
            raise Malformed(f"cannot read attempt #{number}: the file says #{attempt.number}", f"see {path}")
        return attempt

    def numbers(self) -> list[int]:
        try:
            with os.scandir(self.root) as found:  # a hundred thousand: no path is made of each
                return sorted(int(entry.name[:-5]) for entry in found if is_record(entry.name) and is_plain_file(entry))
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            return []

    # Where each file lies. An id is checked, because it becomes part of a path.

    def _record(self, number: int) -> Path:
        return self.root / f"{number:06d}.json"

    def _waiting(self, agent: str, submission_id: str) -> Path:
        return self.root / "inbox" / agent / f"{_checked(submission_id)}.json"

    def _reply(self, agent: str, submission_id: str) -> Path:
        return self.root / "replies" / agent / f"{_checked(submission_id)}.json"


def is_record(name: str) -> bool:
    """Whether a file of this name stands where a record would."""
    return _RECORD.fullmatch(name) is not None


def _is_submission(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".json") and is_plain_file(entry)


def _checked(submission_id: str) -> str:
    if not SUBMISSION_ID.fullmatch(submission_id):
        raise ValueError(f"{submission_id[:60]!r} is not the id of a submission")
    return submission_id
