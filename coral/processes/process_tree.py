"""The living processes, each identified by more than its pid, and all processes that belong to a launch.

A pid alone identifies nothing, because the kernel gives it away again; together with the start time and the machine's
boot it does.
"""

import contextlib
import errno
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coral.processes import cgroup, rlimit_tag
from workspace.plain_file import OWN_USERS, number_of_candidates

TAG = "CORAL_LAUNCH"
_TAG_PREFIX = f"{TAG}=".encode()
_PROC = Path("/proc")
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # of this machine: they say nothing of a process
MAX_RESCANS = 3  # for one launch, whose processes may end and start others all the time


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of one process. `started`: the start time in the kernel's ticks. `boot`: the machine's boot. Of the
    launch that this process began: `group`: its control group, or ""; `sealed`: whether its program runs below this
    process, in a sandbox; `user`: the user under which only this agent or grade runs, 0 if there is none."""

    pid: int
    started: int
    boot: str
    group: str = field(default="", compare=False)
    sealed: bool = field(default=False, compare=False)
    user: int = field(default=0, compare=False)


def identify(pid: int) -> Identity | None:
    """Return the process that has this pid now; None if there is none, or only a zombie. OSError if that cannot be
    found out, because no file can be opened now."""
    if _has_proc():
        found = _stat(pid)
        return None if found is None else Identity(pid, found.started, _boot())
    from coral.processes import without_proc

    started = without_proc.started(pid)
    return None if started is None else Identity(pid, started, _boot())


def unidentified() -> Identity:
    """Return an identity that no process has: for a launch of which only the tag is known."""
    return Identity(-1, 0, _boot())


def is_alive(identity: Identity) -> bool:
    return identify(identity.pid) == identity


def members(identity: Identity, tag: str, table: "ProcessTable | None" = None) -> list[Identity]:
    """Return every living process of a launch: its process group, its session, its descendants, all processes in its
    control group or with its tag (by a resource limit or in their environment), and those of its user that belong to no
    other launch. `table`: a table to scan again for it."""
    table = table or ProcessTable()
    table.scan()
    return table.members(identity, tag)


class ProcessTable:
    """One scan of all processes, for any number of launches. The next scan of the same table costs less.

    An answer is about the moment of the scan. If nothing was left of a launch then, it can start nothing more. But if
    processes were left that have ended since, the table is scanned again: they may have started others in between.
    """

    def __init__(self) -> None:
        self._table: dict[int, _Stat] = {}
        self._inodes: dict[int, int] = {}
        self._children: dict[int, list[int]] = {}
        # Both are read once for each process: a fleet has a thousand, and every end of a launch asks for all.
        self._env_tags: dict[tuple[int, int], bytes] = {}
        self._rlimit_tags: dict[tuple[int, int], int] = {}
        self._users: dict[tuple[int, int], int] = {}
        self._launches: dict[str, tuple[Identity, str]] = {}
        self.scanned = False

    def add_launch(self, who: str, identity: Identity, tag: str) -> None:
        """Note a launch that lives from now on. Several launches of an agent may have one user."""
        self._launches[who] = identity, tag

    def remove_launch(self, who: str) -> None:
        self._launches.pop(who, None)

    def others_of_user(self, identity: Identity) -> list[tuple[Identity, str]]:
        """Return the other living launches of a launch's user."""
        same = (launch for launch in self._launches.values() if identity.user and launch[0].user == identity.user)
        return [launch for launch in same if launch[0] != identity]

    def scan(self) -> None:
        self._table, self.scanned = self._read_changed() if _has_proc() else _portable_table(), True
        self._index_children()
        living = {(pid, entry.started) for pid, entry in self._table.items()}
        self._env_tags = {process: tag for process, tag in self._env_tags.items() if process in living}
        self._rlimit_tags = {process: tag for process, tag in self._rlimit_tags.items() if process in living}
        self._users = {process: user for process, user in self._users.items() if process in living}

    def _read_changed(self) -> "dict[int, _Stat]":
        """Read only new processes and those whose parent is gone: parent and start time of the others cannot have
        changed, and no process enters the group or session of a launch from outside. A new process that got the pid of
        an old one is noticed by the inode of its folder in /proc."""
        before, now = self._inodes, _inodes()
        gone = {pid for pid, inode in before.items() if now.get(pid) != inode}
        found = {}
        for pid in now:
            known = self._table.get(pid) if pid in before and pid not in gone else None
            if known is None or known.parent in gone:
                known = _stat(pid)
            if known is not None:
                found[pid] = known
        self._inodes = now
        return found

    def _index_children(self) -> None:
        self._children = {}
        for pid, entry in self._table.items():
            self._children.setdefault(entry.parent, []).append(pid)

    def members(self, identity: Identity, tag: str) -> list[Identity]:
        """Return every process of a launch that lived at the scan, except ourselves."""
        if identity.boot != _boot():
            return []
        for scans in range(MAX_RESCANS + 1):
            inside = self._add(cgroup.members(identity.group))
            mine = self._with_user(identity, self._related(identity, tag, inside))
            # After the last scan the processes are not read again: they may have ended, but it is not known that none
            # is left, and the caller will ask again.
            if scans == MAX_RESCANS or not self._read_again(mine):
                break
            if mine := self._with_user(identity, self._related(identity, tag, inside & self._table.keys())):
                break
            self.scan()
        return [Identity(pid, self._table[pid].started, identity.boot) for pid in mine if pid != os.getpid()]

    def _add(self, pids: list[int]) -> set[int]:
        """Read those of these processes that began after the scan; return all of them that live."""
        for pid in pids:
            if pid not in self._table and (found := _stat(pid)) is not None:
                self._table[pid] = found
        return {pid for pid in pids if pid in self._table}

    def _related(self, identity: Identity, tag: str, inside: set[int]) -> set[int]:
        leader = self._table.get(identity.pid)
        led = leader is not None and leader.started == identity.started
        mine, wanted = {identity.pid} | inside if led else set(inside), {rlimit_tag.value_of(tag), tag.encode()} - {b""}
        for pid, entry in self._table.items():
            # A group whose leader has ended proves nothing: its number may have been that of another leader since, who
            # has ended as well. Our processes have a tag then, except where the system shows none.
            of_group = identity.pid in (entry.group, entry.session) and (led or (leader is None and not _has_proc()))
            if entry.started >= identity.started and (of_group or self._tag(pid, entry.started) in wanted):
                mine.add(pid)
        return self._with_descendants(mine)

    def _with_user(self, identity: Identity, named: set[int]) -> set[int]:
        """Return the processes in `named`, and those of the launch's user that belong to none of the user's other
        launches. Processes in `named` that belong to another agent's user are left out: such an agent may have given
        them this launch's tag."""
        if not identity.user:
            return named
        later = [(pid, entry.started) for pid, entry in self._table.items() if entry.started >= identity.started]
        users = {pid: self._user(pid, started) for pid, started in later}
        own = (identity.user, number_of_candidates(identity.user))
        mine = {pid for pid, user in users.items() if user in own}
        if mine - named:
            for other, tag in self.others_of_user(identity):
                mine -= self._related(other, tag, self._add(cgroup.members(other.group))) - named
        return mine | {pid for pid in named if users.get(pid) not in OWN_USERS}

    def _user(self, pid: int, started: int) -> int:
        """Return the real user of a process. Remembered only once it is final: the first process of a launch, which has
        our tag, is started by us and becomes another user later."""
        known = self._users.get((pid, started))
        if known is not None:
            return known
        user = rlimit_tag.user_of(pid)
        if user in OWN_USERS or not self._tag(pid, started):
            self._users[pid, started] = user
        return user

    def _with_descendants(self, mine: set[int]) -> set[int]:
        mine, parents = set(mine), list(mine)
        while parents:
            for pid in self._children.get(parents.pop(), ()):
                if pid not in mine:
                    mine.add(pid)
                    parents.append(pid)
        return mine

    def _read_again(self, mine: set[int]) -> bool:
        """Read these processes again; return whether one has ended since the scan, or has changed its group or
        parent."""
        now = {pid: _stat(pid) for pid in mine if _has_proc()}
        changed = {pid: entry for pid, entry in now.items() if entry != self._table[pid]}
        for pid, entry in changed.items():
            del self._table[pid]
            if entry is not None:
                self._table[pid] = entry
        if changed:
            self._index_children()
        return bool(changed)

    def _tag(self, pid: int, started: int) -> int | bytes:
        """Return the tag that names the process's launch: by a resource limit, else in its environment; empty if it has
        none."""
        value = self._rlimit_tags.get((pid, started))
        if value is None:
            value = self._rlimit_tags[pid, started] = rlimit_tag.read(pid)
        return value or self._env_tag(pid, started)

    def _env_tag(self, pid: int, started: int) -> bytes:
        """Return the tag in a process's environment, or empty. An empty environment is not remembered: a process that
        is just becoming another program has none for a moment."""
        known = self._env_tags.get((pid, started))
        if known is not None:
            return known
        environment = _environment(pid)
        tags = [entry.removeprefix(_TAG_PREFIX) for entry in environment.split(b"\0") if entry.startswith(_TAG_PREFIX)]
        tag = tags[0] if tags else b""
        if environment:
            self._env_tags[pid, started] = tag
        return tag


class _Stat(NamedTuple):
    parent: int
    group: int
    session: int
    started: int


def _inodes() -> dict[int, int]:
    """Return every process's pid, and the inode of its folder, which no other process has."""
    with os.scandir(_PROC) as entries:
        return {int(entry.name): entry.inode() for entry in entries if entry.name.isdigit()}


def _stat(pid: int) -> _Stat | None:
    """Read the parent, session, group and start time of a process from /proc; None if it has ended. OSError if this
    process can open no file now."""
    # Without pathlib: hundreds are read at once, and a path costs more than the reading.
    try:
        file = os.open(f"{_PROC}/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            raw = os.read(file, 4096)
        finally:
            os.close(file)
    except OSError as error:
        if error.errno in _SHORTAGES:
            raise
        return None
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
    """Return the environment with which a process of this user, or of one of our users, was started; empty where we may
    not read it."""
    if not _has_proc():
        from coral.processes import without_proc

        return without_proc.environment(pid)
    try:
        with open(f"{_PROC}/{pid}/environ", "rb", buffering=0) as file:
            return file.readall() if rlimit_tag.is_ours(os.fstat(file.fileno()).st_uid) else b""
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
