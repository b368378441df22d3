"""Limits what one grade may use of the machine: all its processes together, for which not every system has a limit.

Coral checks now and then while the grade runs. A grade over a limit is ended, and its attempt has failed.
"""

import contextlib
import errno
import os
import stat
from dataclasses import dataclass
from math import inf
from pathlib import Path

from coral.config.model import GraderSection
from coral.grader.remove_tree import take_rights
from coral.processes import cgroup
from coral.processes.process_tree import Identity, members
from coral.processes.usage import machine_memory, usage_of

CHECK_SECONDS = 0.5
GIGABYTE = 10**9
SHARE_OF_MEMORY = 0.8  # of the machine's
_REST = 20  # times the seconds that a check took, until the next one: large folders take long
LONGEST_PAUSE = 3.0  # seconds: one grade with a large folder must not put off the checks of all
MOST_NAMES = 2_000_000  # files and folders of a grade that has a limit: to count more takes too long
LEAST_DISK = GIGABYTE  # bytes that a grade may write however little is free: if less is, the disk is full before
LEAST_NAMES = 100_000  # files and folders that a grade may make however few the disk has room for
BYTES_OF_NAME = 256  # that a file without content takes of the disk
SHARE_OF_TAKEN = 0.9  # of what the disk has lost: a grade whose folder holds as much has taken it


@dataclass(frozen=True, slots=True)
class GradeLimits:
    """The limits of one grade. `threads`: processes and threads; `memory`, `disk`: bytes; None: a share of the
    machine's."""

    threads: int
    memory: int | None
    disk: int | None

    @classmethod
    def of(cls, grader: GraderSection) -> "GradeLimits":
        return cls(grader.threads, _bytes(grader.memory), _bytes(grader.disk))

    @property
    def most_memory(self) -> int:
        """The bytes of memory that the grade may use."""
        return self.memory or int(machine_memory() * SHARE_OF_MEMORY)


class GradeCheck:
    """Checks one grade, from its beginning on. `identity` and `tag`: of its launch; `folder`: the one that it writes
    to."""

    def __init__(self, limits: GradeLimits, identity: Identity, tag: str, folder: Path) -> None:
        self._limits = limits
        self._identity = identity
        self._tag = tag
        self._folder = folder
        self._uncounted = 0  # checks in a row that could not count everything
        self._free, self._free_names = _free(folder), _free_names(folder)

    def exceeded(self) -> str:
        """Return why the attempt fails, if its grade is over a limit; empty if it is over none. Blocks."""
        limits = self._limits
        too_many = f"its grade started more than {limits.threads} processes and threads (grader.threads)"
        pids = cgroup.members(self._identity.group) or [process.pid for process in members(self._identity, self._tag)]
        if len(pids) > limits.threads:
            return too_many
        memory = limits.most_memory
        use = usage_of(pids, exact_above=memory)
        if use.threads > limits.threads:
            return too_many
        if use.memory > memory:
            return f"its grade used more than {memory / GIGABYTE:.3g} GB of memory (grader.memory)"
        return self._over_disk()

    def _over_disk(self) -> str:
        if limit := self._limits.disk:
            size, names = _held(self._folder, limit, MOST_NAMES)
            self._uncounted = self._uncounted + 1 if size == inf else 0
            if self._uncounted > 1:  # once may be a folder that was just being closed
                return "its grade wrote into folders that lie too deep or are closed again and again (grader.disk)"
            if size <= limit and names > MOST_NAMES:
                return f"its grade made more than {MOST_NAMES} files (grader.disk)"
            return f"its grade wrote more than {limit / GIGABYTE:.3g} GB (grader.disk)" if limit < size < inf else ""
        free = _free(self._folder)
        taken = self._free - free  # by whomever: it counts as the grade's if its folder holds as much
        if taken > max(free, LEAST_DISK) and _held(self._folder, taken)[0] >= taken * SHARE_OF_TAKEN:
            return f"its grade wrote {taken / GIGABYTE:.3g} GB, half of what was free (grader.disk)"
        free = _free_names(self._folder)
        taken = self._free_names - free
        if taken > max(free, LEAST_NAMES):
            size, names = _held(self._folder, inf, taken)
            if size == inf or names >= taken * SHARE_OF_TAKEN:
                return f"its grade made {taken} files, half of what was free (grader.disk)"
        return ""


def pause_after(seconds: float) -> float:
    """Return the seconds to wait after a check that took `seconds`."""
    return min(max(CHECK_SECONDS, _REST * seconds), LONGEST_PAUSE)


def _bytes(gigabytes: float | None) -> int | None:
    return None if gigabytes is None else int(gigabytes * GIGABYTE)


def _free(folder: Path) -> int:
    try:
        disk = os.statvfs(folder)
    except OSError:
        return 0
    return disk.f_bavail * disk.f_frsize


def _free_names(folder: Path) -> int:
    """Return how many files the disk has room for; 0 if that is not known, or not limited."""
    try:
        return os.statvfs(folder).f_favail
    except OSError:
        return 0


def _held(folder: Path, most: float, most_names: float = inf) -> tuple[float, int]:
    """Return the bytes on the disk and the number of all files and folders below a folder, counted until either is more
    than its `most`. The bytes are inf if there is a path that is longer than the system takes, or a folder that is
    closed again once it was opened: anything may lie below."""
    total, names, folders, opened = 0, 0, [str(folder)], set[str]()
    while folders and total <= most and names <= most_names:
        path = folders.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue  # removed as well; what is beside it counts
                    total += max(status.st_blocks * 512, BYTES_OF_NAME)
                    names += 1
                    if total > most or names > most_names:
                        break
                    if stat.S_ISDIR(status.st_mode):
                        folders.append(entry.path)
        except PermissionError:
            if path in opened:
                return inf, names
            opened.add(path)
            with contextlib.suppress(OSError):
                take_rights(path)
            folders.append(path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return inf, names
            continue  # the grade removed it meanwhile
    return total, names
