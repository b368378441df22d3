"""Writing the journal: each line whole or not at all, and before anything in it is done.

When a file has grown long, the next begins with everything that is known, so that going on needs no file but the
newest. That it cannot be begun, on a full disk, stops nothing: it is tried again later. The next is also begun where
somebody did something to the file: what is known here is not lost with it.
"""

import contextlib
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
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
from coral.journal.fold import recover
from coral.journal.integrity import is_as_written, seen, wrong_with
from coral.journal.lines import FORMAT, Lines, seal
from coral.journal.segments import PACKED, Packing, number_of, prepare_folder, segment_path, segments
from coral.processes.process_table import Identity

LONG = 8 << 20  # bytes after the head, from which on the next file is begun
QUIET_SECONDS = 60.0  # of the run's clock, after which a line says no more than how late it is
TRIES = 8  # how often that is tried again while a file grows by as much once more
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Journal:
    """The journal of one run, opened for appending by the one who holds the run's lock. `memory`: what it said then."""

    def __init__(self, path: Path, long: int = LONG) -> None:
        prepare_folder(path)
        self.path = path
        self.recovered, read = recover(path)
        self._long = long
        self._known: dict[str, Any] = {}
        if self.recovered.folder is not None:
            self._known = {"rules": encode(self.recovered.rules), "folder": list(self.recovered.folder)}
        self._started = {
            who: [launch, encode(identity)] for who, (launch, identity) in self.recovered.identities.items()
        }
        self._last = Moment(run_time=self.recovered.clock, wall_time=self.recovered.wall)
        self._fleet = self.recovered.fleet
        self._packing = Packing()
        self._seen, self._wrong, self._torn, self._there = (0, 0), dict[str, None](), False, set[int]()
        self._file, self._number, self._size, self._sum, self._named, self._next_at = -1, 1, 0, 0, True, 0
        self._open(read)
        self._there |= {number_of(file) for file in segments(path)}

    def open_supervision(self, rules: Rules, now: Moment, folder: tuple[int, int]) -> None:
        """The first line of every supervisor: by which rules it decides, and in which folder."""
        known = {"rules": encode(rules), "folder": list(folder)}
        self._append({**_FORMAT, **known, "at": now.run_time, "wall": now.wall_time}, durable=True)
        if self._known.get("folder") != known["folder"]:
            self._started = {}
        self._known, self._last = known, now

    def record(
        self, now: Moment, events: Iterable[Event], actions: Collection[Action], before: Fleet, after: Fleet
    ) -> None:
        """One decision. OSError means that it is not written, and nothing of it may be done."""
        plain_events, plain_actions = encode(tuple(events)), encode(tuple(actions))
        # Preferably in a turn that leads to nothing: nobody waits for it.
        if self._size > self._next_at + (self._long if plain_actions else 0):
            self._try_to_begin_next()
        line = {"at": now.run_time, "wall": now.wall_time, "events": plain_events, "actions": plain_actions}
        # A mere sign of life may be lost with the machine; everything that leads to an action may not. A grader runs
        # only once `record_started` has written who it is: that makes this line durable, too.
        durable = any(not isinstance(action, StartGrader) for action in actions)
        self._append({**line, "set": difference(before, after)}, durable=durable)
        self._last, self._fleet = now, after

    def record_time(self, now: Moment) -> None:
        """Nothing happened, and that for so long: what of a quiet hour is not written down is gone with a supervisor
        that is killed, and every deadline would come that much later. OSError as for `record`."""
        if self.is_quiet(now):
            self._append({"at": now.run_time, "wall": now.wall_time}, durable=False)
            self._last = now

    def is_quiet(self, now: Moment) -> bool:
        """Whether nothing was written for so long that the time has to be."""
        return now.run_time - self._last.run_time >= QUIET_SECONDS

    def record_started(self, started: Mapping[str, tuple[int, Identity]]) -> None:
        """Who was started, before any of them is let go."""
        plain = {who: [launch, encode(identity)] for who, (launch, identity) in started.items()}
        self._append({"started": plain}, durable=True)
        self._started |= plain

    def repair(self) -> Iterator[Restored]:
        """What somebody did to the journal since we last looked, after it was put right where that is possible."""
        with contextlib.suppress(OSError):  # the next line says so
            if not self._is_ours():
                self._begin(self._number + 1)
        for wrong in self._wrong:
            yield Restored(item="the journal", found=wrong, source="memory")
        self._wrong = {}
        for number in sorted(self._there - {self._number}):
            paths = (
                segment_path(self.path, number),
                segment_path(self.path, number).with_name(f"{number:06d}.jsonl{PACKED}"),
            )
            # In this order: when it is packed, the second is there before the first is gone.
            if not any(path.exists() for path in paths):
                self._there.remove(number)
                yield Restored(item=f"{paths[0].name} of the journal", found="was deleted", source="")
        yield from self._set_strangers_aside()

    def close(self) -> None:
        self._packing.close()
        os.close(self._file)

    def _open(self, read: Lines | None) -> None:
        files = segments(self.path)
        if read is None:
            for file in files:
                file.unlink()  # it has not one whole line
            self._take(segment_path(self.path, 1), os.open(segment_path(self.path, 1), _OPEN, 0o600), named=False)
        elif read.path == files[-1] and read.path.suffix != PACKED:
            self._take(read.path, os.open(read.path, _OPEN), read.end, read.sum, read.head)
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
                if not self._named:
                    sync_folder(self.path)
                    self._named = True
        except OSError:
            self._torn = True
            with contextlib.suppress(OSError):
                self._cut()
            raise
        self._size += len(data)
        self._sum = checksum
        self._seen = seen(self._file)

    def _cut(self) -> None:
        """Take away what is not ours, or was left by a write that failed."""
        if os.fstat(self._file).st_size > self._size:
            os.ftruncate(self._file, self._size)
            if not self._torn:
                self._wrong["was added to"] = None
        self._torn = False
        self._seen = seen(self._file)

    def _is_ours(self) -> bool:
        """Whether the file holds what we wrote, and a line that is added now will be found again."""
        path = segment_path(self.path, self._number)
        wrong = wrong_with(path, self._file, self._size)
        if not wrong and (self._torn or self._seen != seen(self._file)):
            self._cut()
            wrong = "" if is_as_written(path, self._size, self._sum) else "was altered"
        if wrong:
            self._wrong[wrong] = None
        return not wrong

    def _set_strangers_aside(self) -> Iterator[Restored]:
        """Files that would be taken for newer ones of ours."""
        with contextlib.suppress(CoralError, OSError):
            for file in [file for file in segments(self.path) if number_of(file) > self._number]:
                file.rename(file.with_name(f"foreign-{time.time_ns()}-{file.name}"))
                yield Restored(item=f"a file {file.name} of the journal", found="was put there", source="memory")

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
        """The next file appears whole, with its first line, or not at all."""
        self._started = {who: identity for who, identity in self._started.items() if _matters(who, self._fleet)}
        head = {**_FORMAT, **self._known, "at": self._last.run_time, "wall": self._last.wall_time}
        data, checksum = seal({**head, "started": self._started, "state": encode_fleet(self._fleet)}, 0)
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
        self._take(path, file, len(data), checksum, len(data), named=False)

    def _take(self, path: Path, file: int, size: int = 0, sum: int = 0, head: int = 0, named: bool = True) -> None:
        """Go on in this file. Until it is certain that its name is on the disk, it is not `named`."""
        if self._file >= 0:
            os.close(self._file)
        self._file, self._number, self._size, self._sum, self._named = file, number_of(path), size, sum, named
        self._next_at = head + max(self._long, head)
        self._there.add(self._number)
        self._torn = True  # what there is more of was left by the supervisor before
        self._cut()


_FORMAT = {"format": FORMAT, "version": __version__}


def _write(file: int, data: bytes) -> None:
    written = os.write(file, data)
    if written != len(data):
        raise OSError(f"only {written} of {len(data)} bytes were written")


def _matters(who: str, fleet: Fleet) -> bool:
    """Whether it may have to be known which process this is: an agent's, one that grades what is not published, or a
    job that goes on."""
    if (job := job_in(who)) is not None:
        return job in fleet.jobs
    number = grade_in(who)
    return who in fleet.agents if number is None else number in fleet.pending
