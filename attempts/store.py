"""The attempts folder: submissions come in, records go out.

Agents write `inbox/<agent>/`, the supervisor everything else. A file in an inbox is read as a submission, or is
`Malformed` with the reason.
"""

import os
import re
from collections.abc import Collection
from pathlib import Path

from attempts.fields import SUBMISSION_ID
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
from attempts.record import Attempt, Submission, attempt_from_dict, submission_from_dict, to_dict

SUBMISSION_BYTES = 64 * 1024
REPLIES = 1_000  # replies that are kept for one agent; each `coral eval` lists them
MAX_NAMES = 5_000  # the first names of one folder, which are listed; the others are listed when these are gone
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
    """A file is no valid submission or record. The message is the reason."""


class Store:
    """The folder `attempts/` of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._listings = Listings()

    # Submissions.

    def inbox(self, most: int | None = None, only: Collection[Path] | None = None) -> list[tuple[str, str, Path]]:
        """Return the submissions in the inboxes, oldest first: agent, id, path. Files whose name is no id are listed
        too.

        At most `most` of each agent, because one that floods its inbox must not delay the others. `only`: the agents'
        folders to list, if the caller knows that the others have no new file.
        """
        waiting: list[tuple[str, str, Path]] = []
        root = self.root / "inbox"
        if only is None or root in only:
            folders = self._listings.entries(root, is_plain_folder, MAX_NAMES)
        else:
            folders = [folder for folder in only if folder.parent == root]
        for folder in folders:
            own = sorted(self._listings.entries(folder, _is_submission, MAX_NAMES))
            waiting += [(path.stem, folder.name, path) for path in own[:most]]
        return [(agent, name, path) for name, agent, path in sorted(waiting)]

    def read_submission(self, agent: str, path: Path) -> Submission:
        """Read what an agent submitted. Malformed if the file is at fault, OSError if this machine is."""
        try:
            submission = submission_from_dict(parse_object(read_bytes(path, SUBMISSION_BYTES)), agent)
            if submission.id != path.stem:
                raise ValueError("id: is not the name of the file")
        except (FileNotFoundError, ValueError) as error:
            reason = "it is gone" if isinstance(error, FileNotFoundError) else str(error)
            raise Malformed(reason, "submit with `coral eval`") from None
        return submission

    def clear(self, agent: str, submission_id: str) -> None:
        """Remove a submission that was accepted."""
        (self.root / "inbox" / agent / f"{_checked(submission_id)}.json").unlink(missing_ok=True)

    # Replies.

    def reply(self, agent: str, submission_id: str, data: dict[str, object]) -> None:
        """Answer the waiting `coral eval`. Not durable: if a reply is lost, the record says the same."""
        write_json(self._reply_file(agent, submission_id), data, durable=False)

    def read_reply(self, agent: str, submission_id: str) -> dict[str, object] | None:
        path = self._reply_file(agent, submission_id)
        try:
            return parse_object(read_bytes(path))
        except (FileNotFoundError, ValueError):
            return None

    def forget_replies(self, agent: str) -> None:
        """Remove an agent's oldest replies. A `coral eval` that still waits for one finds the record instead."""
        folder = self.root / "replies" / agent
        if folder.is_symlink() or not folder.is_dir():
            return  # through a link, files elsewhere would be removed
        names = [name for name in os.listdir(folder) if _REPLY.fullmatch(name)]  # noqa: PTH208 - at each attempt
        for name in sorted(names)[:-REPLIES]:
            (folder / name).unlink(missing_ok=True)

    # Records.

    def publish(self, attempt: Attempt) -> Path | None:
        """Write the file of a record, durably; do nothing if it is there as it should be.

        Anything else in its place is kept in the folder under a hidden name, which is returned.
        """
        data, path, kept = to_dict(attempt), self._record(attempt.number), None
        readable = attempt_from_dict(data)  # ValueError before anything is written that no reader would accept
        try:
            if self.read(attempt.number) == readable:
                return None
            kept = self._keep(path)
        except Missing:
            pass
        except Malformed:
            kept = self._keep(path)
        write_json(path, data, durable=True)
        return kept

    def set_aside(self, number: int) -> Path:
        """Rename a file in the place of a record that was never published to a hidden name, which is returned."""
        path = self._record(number)
        return path.rename(hidden(path))

    def witness(self, number: int) -> Witness | None:
        """Return the witness of a record's file; None where there is no file."""
        return witness(self._record(number))

    def _keep(self, path: Path) -> Path:
        """Give a file that is about to be replaced a second, hidden name, so that there is a file in its place at every
        moment."""
        kept = hidden(path)
        try:
            os.link(path, kept, follow_symlinks=False)
        except OSError:
            path.rename(kept)  # a folder, or a file system without links
        return kept

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

    def find(self, number: int | None) -> Attempt | None:
        """Return the record with this number; None if there is none that can be read."""
        if number is None or number < 0:
            return None
        try:
            return self.read(number)
        except (StoreError, OSError):
            return None

    def numbers(self) -> list[int]:
        try:
            with os.scandir(self.root) as found:  # of a hundred thousand: making a path of each would take long
                return sorted(int(entry.name[:-5]) for entry in found if is_record(entry.name) and is_plain_file(entry))
        except (FileNotFoundError, PermissionError, NotADirectoryError):
            return []

    # Paths. An id is checked, because it becomes part of a path.

    def _record(self, number: int) -> Path:
        return self.root / f"{number:06d}.json"

    def _reply_file(self, agent: str, submission_id: str) -> Path:
        return self.root / "replies" / agent / f"{_checked(submission_id)}.json"


def is_record(name: str) -> bool:
    return _RECORD.fullmatch(name) is not None


def _is_submission(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".json") and is_plain_file(entry)


def _checked(submission_id: str) -> str:
    if not SUBMISSION_ID.fullmatch(submission_id):
        raise ValueError(f"{submission_id[:60]!r} is not the id of a submission")
    return submission_id
