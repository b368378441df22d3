"""Writes the journal: each line whole or not at all, and before anything in it is done.

When a file has grown long, the next one begins with the whole state: a supervisor needs the newest file alone. If the
next file cannot be begun, as on a full disk, the current one is used on, and it is tried again later.

Agents without a sandbox may reach the file. Its name and size are compared before every line; its content is read again
only if its change time shows that somebody wrote to it. In that case too the next file is begun: this process knows the
whole state, so nothing is lost.
"""

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attempts.files import sync_folder
from coral import __version__
from coral.codec import encode
from coral.errors import CoralError
from coral.fleet.actions import Action, StartGrader
from coral.fleet.events import Event, Moment, Restored
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal.changes import difference, encode_fleet
from coral.journal.fold import RecoveredState, recover
from coral.journal.lines import FORMAT, Lines, seal
from coral.journal.segments import PACKED, Packing, number_of, prepare_folder, segment_path, segments
from coral.processes.process_tree import Identity

LONG = 8 << 20  # bytes after the head, from which on the next file is begun
QUIET_SECONDS = 60.0  # of the run's clock without a line, after which one is written that only tells the time
TRIES = 8  # to begin the next file, for each LONG bytes that the current one grows
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
ROLLED_BACK = "rolled_back"
_FORMAT = {"format": FORMAT, "version": __version__}


class Journal:
    """The journal of one run, opened for appending by the holder of the run's lock. `recovered`: its state at that
    moment."""

    def __init__(self, path: Path, long: int = LONG) -> None:
        prepare_folder(path)
        self.path = path
        self.recovered, read = recover(path)
        self._long = long
        self._known = known_of(self.recovered)
        self._started = plain_identities(self.recovered.identities)
        self._last = Moment(run_time=self.recovered.clock, wall_time=self.recovered.wall)
        self._fleet = self.recovered.fleet
        self._packing = Packing()
        self._stamp = (0, 0)
        self._problems: dict[str, None] = {}  # what `repair` has to report, in this order
        self._torn = False
        self._numbers: set[int] = set()
        self._file, self._number, self._size, self._sum, self._name_is_durable, self._next_at = -1, 1, 0, 0, True, 0
        self._open(read)
        self._numbers |= {number_of(file) for file in segments(path)}

    def open_supervision(
        self,
        rules: Rules,
        now: Moment,
        folder: tuple[int, int],
        files: Mapping[str, str] = MappingProxyType({}),
        expected: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Write the first line of a supervisor: the rules it decides by, the folder it works in, the digests of the
        task's `files`, and the digests that they are `expected` to have after a change that is under way."""
        known = {"rules": encode(rules), "folder": list(folder), "files": dict(files), "expected": dict(expected)}
        self._append({**_FORMAT, **known, "at": now.run_time, "wall": now.wall_time}, durable=True)
        known |= {name: value for name, value in self._known.items() if name == ROLLED_BACK}
        if self._known.get("folder") != known["folder"]:
            self._started = {}
        self._known, self._last = known, now

    def record(
        self, now: Moment, events: Iterable[Event], actions: Collection[Action], before: Fleet, after: Fleet
    ) -> None:
        """Write one decision. OSError means that it is not written, and none of its actions may be performed."""
        plain_events, plain_actions = encode(tuple(events)), encode(tuple(actions))
        # Preferably in a turn without actions: nobody waits for it.
        if self._size > self._next_at + (self._long if plain_actions else 0):
            self._try_to_begin_next()
        line = {"at": now.run_time, "wall": now.wall_time, "events": plain_events, "actions": plain_actions}
        # Only lines with actions are synced to the disk. StartGrader needs none here: `record_started` syncs the file
        # before the grader runs.
        durable = any(not isinstance(action, StartGrader) for action in actions)
        self._append({**line, "set": difference(before, after)}, durable=durable)
        self._last, self._fleet = now, after
        self._known.pop(ROLLED_BACK, None)  # the first decision has handled it

    def record_time(self, now: Moment) -> None:
        """Write the time after QUIET_SECONDS without a line: if the supervisor is killed, the time since the last line
        is lost, and every deadline comes that much later. OSError as for `record`."""
        if self.is_quiet(now):
            self._append({"at": now.run_time, "wall": now.wall_time}, durable=False)
            self._last = now

    def is_quiet(self, now: Moment) -> bool:
        """Return whether QUIET_SECONDS have passed since the last line, so that the time is to be written."""
        return now.run_time - self._last.run_time >= QUIET_SECONDS

    def record_started(self, started: Mapping[str, tuple[int, Identity]]) -> None:
        """Write the identities of processes that were started, before any of them is released. OSError as for
        `record`."""
        plain = plain_identities(started)
        self._append({"started": plain}, durable=True)
        self._started |= plain

    def repair(self) -> Iterator[Restored]:
        """Restore the journal where that is possible, and yield what was done to it since the last call."""
        with contextlib.suppress(OSError):  # appending the next line raises the same error
            if not self._is_ours():
                self._begin(self._number + 1)
        for problem in self._problems:
            yield Restored(item="the journal", found=problem, source="memory")
        self._problems = {}
        for number in sorted(self._numbers - {self._number}):
            path = segment_path(self.path, number)
            # In this order: when a file is packed, the packed one is there before the other is gone.
            if not path.exists() and not path.with_name(path.name + PACKED).exists():
                self._numbers.remove(number)
                yield Restored(item=f"{path.name} of the journal", found="was deleted", source="")
        with contextlib.suppress(CoralError, OSError):
            # Files with higher numbers would be taken for newer files of the journal.
            for file in [file for file in segments(self.path) if number_of(file) > self._number]:
                file.rename(file.with_name(f"foreign-{time.time_ns()}-{file.name}"))
                yield Restored(item=f"a file {file.name} of the journal", found="was put there", source="memory")

    def expect_files(self, digests: Mapping[str, str]) -> None:
        """Write the digests that files of the task will have after a change, before the change is made; an empty digest
        for a file that it removes. The first line of the next supervisor replaces them. OSError as for `record`."""
        self._append({"expected": dict(digests)}, durable=True)
        self._known["expected"] = dict(digests)

    def begin_next(self) -> None:
        """Begin the next file with the whole state. OSError as for `record`."""
        self._begin(self._number + 1)

    def close(self) -> None:
        self._packing.close()
        os.close(self._file)

    def _open(self, read: Lines | None) -> None:
        files = segments(self.path)
        if read is None:
            for file in files:
                file.unlink()  # none has a whole line
            path = segment_path(self.path, 1)
            self._continue_in(path, os.open(path, _OPEN, 0o600), name_is_durable=False)
        elif read.path == files[-1] and read.path.suffix != PACKED:
            self._continue_in(read.path, os.open(read.path, _OPEN), read.end, read.sum, read.head)
        else:
            self._begin(number_of(read.path) + 1)

    def _append(self, line: Mapping[str, Any], durable: bool) -> None:
        if not self._is_ours():
            self._begin(self._number + 1)
        data, checksum = seal(line, self._sum)
        try:
            _write(self._file, data)
            if durable:
                os.fsync(self._file)
                if not self._name_is_durable:
                    sync_folder(self.path)
                    self._name_is_durable = True
        except OSError:
            self._torn = True
            with contextlib.suppress(OSError):
                self._truncate()
            raise
        self._size += len(data)
        self._sum = checksum
        self._stamp = _change_stamp(self._file)

    def _truncate(self) -> None:
        """Remove from the file's end what others appended, and what a failed write left."""
        if os.fstat(self._file).st_size > self._size:
            os.ftruncate(self._file, self._size)
            if not self._torn:
                self._problems["was added to"] = None
        self._torn = False
        self._stamp = _change_stamp(self._file)

    def _is_ours(self) -> bool:
        """Return whether the file holds what we wrote, so that a line appended now can be read again. Notes what is
        wrong for `repair`."""
        problem = self._problem()
        if not problem and (self._torn or self._stamp != _change_stamp(self._file)):
            self._truncate()
            problem = "" if self._is_as_written() else "was altered"
        if problem:
            self._problems[problem] = None
        return not problem

    def _problem(self) -> str:
        """Return why a line appended to the open file would be lost, in words; "" if it would not."""
        try:
            named, ours = os.lstat(segment_path(self.path, self._number)), os.fstat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return "was deleted"
        if (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino):
            return "was replaced"
        return "was cut" if ours.st_size < self._size else ""

    def _is_as_written(self) -> bool:
        lines = Lines(segment_path(self.path, self._number), may_be_torn=True)
        with contextlib.suppress(CoralError):
            for _ in lines.raw():
                if lines.end >= self._size:
                    return (lines.end, lines.sum) == (self._size, self._sum)
            return self._size == 0
        return False

    def _try_to_begin_next(self) -> None:
        try:
            os.fsync(self._file)
            self._begin(self._number + 1)
        except OSError:
            self._next_at = self._size + self._long // TRIES
            return
        older = [file for file in segments(self.path) if number_of(file) < self._number]
        self._packing.start([file for file in older if file.suffix != PACKED])

    def _begin(self, number: int) -> None:
        """Begin a file; it appears with its whole first line or not at all."""
        self._started = {key: identity for key, identity in self._started.items() if _may_run(key, self._fleet)}
        data, checksum = seal(head_of(self._known, self._last, self._started, self._fleet), 0)
        self.path.mkdir(mode=0o700, exist_ok=True)
        path = segment_path(self.path, number)
        unfinished = path.with_name(f".{path.name}")
        file = os.open(unfinished, _OPEN | os.O_TRUNC, 0o600)
        try:
            _write(file, data)
            os.fsync(file)
            unfinished.rename(path)
        except OSError:
            os.close(file)
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        self._continue_in(path, file, len(data), checksum, len(data), name_is_durable=False)

    def _continue_in(
        self, path: Path, file: int, size: int = 0, sum: int = 0, head: int = 0, name_is_durable: bool = True
    ) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file, self._number, self._size, self._sum = file, number_of(path), size, sum
        self._name_is_durable = name_is_durable
        self._next_at = head + max(self._long, head)
        self._numbers.add(self._number)
        self._torn = True  # what is longer than `size` was left by the supervisor before
        self._truncate()


def known_of(recovered: RecoveredState) -> dict[str, Any]:
    """Return the keys of a file's head besides the state; none for a journal that no supervisor has written to."""
    if recovered.folder is None:
        return {}
    known = {"rules": encode(recovered.rules), "folder": list(recovered.folder), "files": recovered.files}
    known |= {"expected": recovered.expected}
    return known if recovered.rolled_back is None else {**known, ROLLED_BACK: encode(recovered.rolled_back)}


def head_of(known: Mapping[str, Any], last: Moment, started: Mapping[str, list[Any]], fleet: Fleet) -> dict[str, Any]:
    """Return the first line of a file that continues another: `known`, the time of the last line, the processes and the
    whole state."""
    head = {**_FORMAT, **known, "at": last.run_time, "wall": last.wall_time}
    return {**head, "started": started, "state": encode_fleet(fleet)}


def plain_identities(identities: Mapping[str, tuple[int, Identity]]) -> dict[str, list[Any]]:
    return {key: [launch, encode(identity)] for key, (launch, identity) in identities.items()}


def _change_stamp(file: int) -> tuple[int, int]:
    """Return size and change time of the file, which show that somebody wrote to it: nobody can set the change time
    back."""
    found = os.fstat(file)
    return found.st_size, found.st_ctime_ns


def _write(file: int, data: bytes) -> None:
    written = os.write(file, data)
    if written != len(data):
        raise OSError(f"only {written} of {len(data)} bytes were written")


def _may_run(key: str, fleet: Fleet) -> bool:
    """Return whether the process with this key may still run: an agent's, a grader's of an unpublished attempt, or a
    job's that goes on."""
    if (job := job_in(key)) is not None:
        return job in fleet.jobs
    number = grade_in(key)
    return key in fleet.agents if number is None else number in fleet.pending
