"""Who lives: processes by more than their pid, and all that belong to a launch.

A pid alone says nothing, for it is given away again; with its start time and the machine's boot it is one process.
"""

import contextlib
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coral.processes import cgroup, rlimit_tag

TAG = "CORAL_LAUNCH"
_MARK = f"{TAG}=".encode()
_PROC = Path("/proc")
MAX_RESCANS = 3  # again, for the sake of one launch: somebody may end and start another all the time


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, not a pid: `started` is its start time in the kernel's ticks, `boot` the machine's current boot.
    `group`: the control group of the launch that it began, where that has one."""

    pid: int
    started: int
    boot: str
    group: str = field(default="", compare=False)


def identify(pid: int) -> Identity | None:
    """Who has this pid now; None if nobody, or only a zombie."""
    if _has_proc():
        found = _stat(pid)
        return None if found is None else Identity(pid, found.started, _boot())
    from coral.processes import without_proc

    started = without_proc.started(pid)
    return None if started is None else Identity(pid, started, _boot())


def is_alive(identity: Identity) -> bool:
    return identify(identity.pid) == identity


def members(identity: Identity, tag: str) -> list[Identity]:
    """Every living process of a launch: its group, its session, its descendants, whoever is in its control group, bears
    its mark or carries its tag."""
    table = ProcessTable()
    table.scan()
    return table.members(identity, tag)


class ProcessTable:
    """One look at all processes, for as many launches as ask about it. Kept, the next look costs less.

    An answer is about the moment of the look. That nothing of a launch was left then holds for good; so if everybody
    who was there has ended since, we look again: they may have started others in the meantime.
    """

    def __init__(self) -> None:
        self._table: dict[int, _Stat] = {}
        self._inodes: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        # What processes were started with is read once: a fleet has a thousand, and every end of a launch asks each.
        self._tags: dict[tuple[int, int], bytes] = {}
        self._marks: dict[tuple[int, int], int] = {}
        self.scanned = False

    def scan(self) -> None:
        self._table, self.scanned = self._look_again() if _has_proc() else _portable_table(), True
        self._tell_children()
        living = {(pid, entry.started) for pid, entry in self._table.items()}
        self._tags = {process: tag for process, tag in self._tags.items() if process in living}
        self._marks = {process: rlimit_tag for process, rlimit_tag in self._marks.items() if process in living}

    def _look_again(self) -> "dict[int, _Stat]":
        """Read who is new, and whose parent is gone: of everybody else the parent and the start are what they were,
        and nobody comes into the group or the session of a launch from outside. The kernel gives a process's folder a
        number of its own, and another one to the next process with the same pid."""
        before, self._inodes = self._inodes, _inodes()
        gone = {pid for pid, inode in before.items() if self._inodes.get(pid) != inode}
        found = {}
        for pid in self._inodes:
            known = self._table.get(pid) if pid in before and pid not in gone else None
            if known is None or known.parent in gone:
                known = _stat(pid)
            if known is not None:
                found[pid] = known
        return found

    def _tell_children(self) -> None:
        self._children = {}
        for pid, entry in self._table.items():
            self._children.setdefault(entry.parent, []).append(pid)

    def members(self, identity: Identity, tag: str) -> list[Identity]:
        """Every process of a launch that lived when we looked, except ourselves."""
        if identity.boot != _boot():
            return []
        for looks in range(MAX_RESCANS + 1):
            inside = self._take_in(cgroup.members(identity.group))
            mine = self._related(identity, tag, inside)
            # After the last look nobody is read again: who was there then may have ended, but that nobody is left is
            # not known, and whoever asks will ask again.
            if looks == MAX_RESCANS or not self._read_again(mine):
                break
            if mine := self._related(identity, tag, inside & self._table.keys()):
                break
            self.scan()
        return [Identity(pid, self._table[pid].started, identity.boot) for pid in mine if pid != os.getpid()]

    def _take_in(self, pids: list[int]) -> set[int]:
        """Those of these who live, also if they have begun to since the look."""
        for pid in pids:
            if pid not in self._table and (found := _stat(pid)) is not None:
                self._table[pid] = found
        return {pid for pid in pids if pid in self._table}

    def _related(self, identity: Identity, tag: str, inside: set[int]) -> set[int]:
        leader = self._table.get(identity.pid)
        led = leader is not None and leader.started == identity.started
        mine, wanted = {identity.pid} | inside if led else set(inside), {rlimit_tag.value_of(tag), tag.encode()} - {b""}
        for pid, entry in self._table.items():
            # A group whose leader has ended says nothing: its number may have been another leader's since, who has
            # ended as well. Those of ours bear a sign then, but where a system shows none.
            of_group = identity.pid in (entry.group, entry.session) and (led or (leader is None and not _has_proc()))
            if entry.started >= identity.started and (of_group or self._sign(pid, entry.started) in wanted):
                mine.add(pid)
        ahead = list(mine)
        while ahead:
            for pid in self._children.get(ahead.pop(), ()):
                if pid not in mine:
                    mine.add(pid)
                    ahead.append(pid)
        return mine

    def _read_again(self, mine: set[int]) -> bool:
        """Whether some of these have ended since they were read, or have left: to a group or a parent of their own."""
        now = {pid: _stat(pid) for pid in mine if _has_proc()}
        changed = {pid: entry for pid, entry in now.items() if entry != self._table[pid]}
        for pid, entry in changed.items():
            del self._table[pid]
            if entry is not None:
                self._table[pid] = entry
        if changed:
            self._tell_children()
        return bool(changed)

    def _sign(self, pid: int, started: int) -> int | bytes:
        """What says of which launch a process is: its mark, or the tag in its environment where it has none."""
        marked = self._marks.get((pid, started))
        if marked is None:
            marked = self._marks[pid, started] = rlimit_tag.read(pid)
        return marked or self._tag(pid, started)

    def _tag(self, pid: int, started: int) -> bytes:
        """The tag in a process's environment. A process that is just becoming another program has none for a moment:
        an empty environment is no answer to be remembered."""
        known = self._tags.get((pid, started))
        if known is not None:
            return known
        environment = _environment(pid)
        tag = next((variable[len(_MARK) :] for variable in environment.split(b"\0") if variable.startswith(_MARK)), b"")
        if environment:
            self._tags[pid, started] = tag
        return tag


class _Stat(NamedTuple):
    parent: int
    group: int
    session: int
    started: int


def _inodes() -> dict[int, int]:
    """Every process's pid, and the number of its folder, which no other process has."""
    with os.scandir(_PROC) as entries:
        return {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}


def _stat(pid: int) -> _Stat | None:
    """A process as the kernel tells it; None if it is gone or a zombie."""
    # Without pathlib: hundreds are read at once, and a path costs more than the reading.
    try:
        file = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        raw = os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
    # The name in parentheses may hold anything, parentheses and spaces too: split after the last one.
    part = raw[raw.rfind(b")") + 2 :].split(None, 20)
    if part[0] in (b"Z", b"X", b"x"):
        return None
    return _Stat(parent=int(part[1]), group=int(part[2]), session=int(part[3]), started=int(part[19]))


def _portable_table() -> dict[int, _Stat]:
    from coral.processes import without_proc

    found = {}
    for pid, parent, started in without_proc.processes():
        with contextlib.suppress(OSError):
            found[pid] = _Stat(parent, os.getpgid(pid), os.getsid(pid), started)
    return found


def _environment(pid: int) -> bytes:
    """What a process of this user's was started with, as the kernel has it; empty where that is not for us to see."""
    if not _has_proc():
        from coral.processes import without_proc

        return without_proc.environment(pid)
    try:
        with open(f"{_PROC}/{pid}/environ", "rb", buffering=0) as file:
            return file.readall() if os.fstat(file.fileno()).st_uid == os.geteuid() else b""
    except OSError:
        return b""


@cache
def _has_proc() -> bool:
    return _PROC.joinpath("self").exists()


@cache
def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        from coral.processes import without_proc

        return without_proc.boot()
