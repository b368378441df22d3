"""Which user owns the files of a run where agents and grades have users of their own: root gives each of them its part,
and closes everything else to them.

A user is a number that no distribution hands out. It is computed from the folder of the run and a name, so that it is
stored nowhere, and another run, also a copy of this one, has other users. Its group has the same number. Further groups
of a run are numbers of the same kind: see `_Groups`. Nothing here follows a link.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from workspace.layout import OPERATOR, Layout, folder_of_runs
from workspace.plain_file import OWN_USERS, number_of_candidates
from workspace.seal import Level

_ROOT = 0
CANDIDATES = "tmp-of-candidates"  # in the folder of a grade
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_TO_GRADERS = ("grader", "holdout", "grading", "verify", "reload", "venvs")  # of the private folder


@dataclass(frozen=True, slots=True)
class User:
    """A user of an agent or a grade. `groups`: the groups besides its own, which has the same number. `umask`: of its
    processes."""

    number: int
    groups: tuple[int, ...]
    umask: int


def candidate_of(user: User) -> User:
    """Return the user as which a grade's candidates run: it can pass the same folders, and cannot read the grader's
    files."""
    return User(number_of_candidates(user.number), user.groups[:2], user.umask)


class _Groups:
    """RUN: may pass the run's folder. AGENTS: may read what is published, and write the shared knowledge. GRADERS: may
    pass the private folder, in which the files of each grader have a group of their own."""

    RUN, AGENTS, GRADERS = "group of the run", "group of agents", "group of graders"


def user_of_agent(layout: Layout, agent: str) -> User:
    groups = (number_of(layout.root, _Groups.RUN), number_of(layout.root, _Groups.AGENTS))
    return User(number_of(layout.root, f"agent {agent}"), groups, 0o007)


def user_of_grade(root: Path, folder: Path, files: Path) -> User:
    """Return the user of a grade. `root`: the run's folder, or another folder that the whole grade is in. `folder`: of
    the grade; `files`: of the grader."""
    groups = [number_of(root, name) for name in (_Groups.RUN, _Groups.GRADERS)]
    number = number_of(root, f"grade {os.path.relpath(folder, root)}")
    return User(number, (*groups, _group_of_files(root, files)), 0o077)


def _group_of_files(root: Path, files: Path) -> int:
    return number_of(root, f"files {os.path.relpath(files, root)}")


def number_of(root: Path, name: str) -> int:
    """Return the number of a user or group of the run in this folder: even, see `plain_file.number_of_candidates`."""
    found = root.stat()
    digest = hashlib.sha256(f"{found.st_dev} {found.st_ino} {name}".encode("utf-8", "surrogateescape")).digest()
    return OWN_USERS[int.from_bytes(digest[:8]) % len(OWN_USERS)] & ~1


def divide_for(level: Level, layout: Layout, agents: Collection[str], share: bool) -> None:
    """Divide a run among users of their own, or undo that if the level of its agents has none."""
    if level is Level.USER:
        divide(layout, agents, share)
    elif os.geteuid() == _ROOT:
        take_back(layout, agents)


def divide(layout: Layout, agents: Iterable[str], share: bool) -> None:
    """Give the agents of a run what is theirs, and close everything else to them, to graders and to other runs. A
    second call changes nothing. OSError if it cannot be done."""
    run, fleet, graders = (number_of(layout.root, name) for name in (_Groups.RUN, _Groups.AGENTS, _Groups.GRADERS))
    inboxes, replies = layout.attempts / "inbox", layout.attempts / "replies"
    passed = [inboxes, replies, layout.requests, layout.requests / "replies", layout.logs_of_all, layout.hub]
    passed += [layout.agents.parent, layout.agents, layout.states, layout.shared_of("all", share=False).parent]
    readable = [layout.attempts, layout.heartbeats, layout.root / "grades", layout.hub / "objects"]
    for folder in passed:
        set_rights(folder, _ROOT, fleet, 0o710)
    for folder in readable:
        set_rights(folder, _ROOT, fleet, 0o750)
    set_rights(layout.history, _ROOT, fleet, 0o750 if share else 0o700)
    for folder in (layout.requests_of(OPERATOR), layout.replies_to(OPERATOR)):
        set_rights(folder, _ROOT, _ROOT, 0o700)
    _close_all(layout.hub, but=("objects",))
    _close_all(layout.agents.parent, but=[path.name for path in (*passed, layout.history, layout.shared)])
    _close_all(layout.private, but=_OPEN_TO_GRADERS)
    for files in (layout.grader, layout.holdout):
        _let_read(files, _group_of_files(layout.root, files))
    for environment in (layout.venvs, *_folders(layout.venvs)):
        set_rights(environment, _ROOT, graders, 0o750)
    for agent in agents:
        give_agent(layout, agent, share)
    if share:
        open_knowledge(layout)
    _close_all(layout.root, but=[path.name for path in _folders(layout.root)])
    set_rights(layout.private, _ROOT, graders, 0o710)
    set_rights(layout.root, _ROOT, run, 0o710)
    close_runs(folder_of_runs(layout), but=layout.root)


def give_agent(layout: Layout, agent: str, share: bool) -> None:
    """Give an agent what only it may reach. Fast if that was done before."""
    user = number_of(layout.root, f"agent {agent}")
    own = [layout.clone(agent), layout.state(agent), layout.attempts / "inbox" / agent, layout.requests_of(agent)]
    for folder in own if share else (*own, layout.shared_of(agent, share)):
        give(folder, user)
    for folder in (layout.attempts / "replies" / agent, layout.replies_to(agent)):
        set_rights(folder, _ROOT, user, 0o750)
    set_rights(layout.logs(agent), _ROOT, user, 0o2750)


def give_grade(folder: Path, user: User, files: Path, top: Path, workspace: Path) -> None:
    """Give a grade's user what is in the folder of its grade, let it read the grader's `files`, and let its candidates
    read the `workspace`, which is in that folder. `top`: the topmost folder of the grade; the folders below it can then
    be passed."""
    through = (folder, files)
    for inner in {parent for path in through for parent in path.parents if parent.is_relative_to(top)} - {folder}:
        set_rights(inner, _ROOT, user.groups[1], 0o710)
    other = number_of_candidates(user.number)
    _give_all(folder, user.number, skipped=files)
    _close_all(folder, but=(files.name,) if files.parent == folder else ())
    _let_read(workspace, other, user.number)
    (folder / CANDIDATES).mkdir(exist_ok=True)
    set_rights(folder / CANDIDATES, other, other, 0o700)
    # Root's, so that nothing is taken away that root has put there; the user adds what it likes. Its candidates pass.
    set_rights(folder, _ROOT, user.number, 0o3771)
    _let_read(files, user.groups[2])


def give(folder: Path, user: int) -> None:
    """Give a folder with everything in it to a user, and close it to all others. The files are not gone through if the
    user has the folder already."""
    with contextlib.suppress(FileNotFoundError):
        if os.lstat(folder).st_uid != user:
            _give_all(folder, user)
        set_rights(folder, user, user, 0o700)


def take_back(layout: Layout, agents: Iterable[str]) -> None:
    """Give everything in a run back to root that another supervisor gave to users of their own."""
    folders = [layout.shared]
    for agent in agents:
        folders += [layout.clone(agent), layout.state(agent), layout.attempts / "inbox" / agent]
        folders += [layout.requests_of(agent), layout.shared_of(agent, share=False)]
    for folder in folders:
        with contextlib.suppress(FileNotFoundError):
            found = os.lstat(folder)
            if found.st_uid in OWN_USERS or found.st_gid in OWN_USERS:
                _give_all(folder, _ROOT)
                set_rights(folder, _ROOT, _ROOT, stat.S_IMODE(found.st_mode) & ~stat.S_ISGID)


def open_knowledge(layout: Layout) -> None:
    """Let all agents change everything in the shared knowledge, also what one of them has closed to the others. A file
    with several names is left alone: it may belong to somebody else, elsewhere."""
    group = number_of(layout.root, _Groups.AGENTS)
    for place, _, files in _walk(layout.shared):
        found = os.fstat(place)
        if found.st_gid != group or stat.S_IMODE(found.st_mode) & 0o2770 != 0o2770:
            os.fchown(place, -1, group)
            os.fchmod(place, stat.S_IMODE(found.st_mode) & 0o770 | 0o2770)
        for name in files:
            _share_file(name, place, group, 0o700)


def closed_to_others(path: Path) -> Path | None:
    """Return the first folder on the way to a path, or the path itself, that other users may not pass or open; None if
    they may."""
    for end in (Path(os.path.normpath(path.absolute())), path.resolve()):
        for part in (*reversed(end.parents), end):
            with contextlib.suppress(OSError):
                mode = part.stat().st_mode
                if not mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH):
                    return part
    return None


def open_to_others(folder: Path, but: Iterable[Path]) -> Path | None:
    """Return what other users can read of a folder: the folder itself, or something in it besides the paths that they
    must reach (`but`); None if nothing."""
    real = folder.resolve()
    if not real.is_dir() or any(not parent.stat().st_mode & stat.S_IXOTH for parent in real.parents):
        return None
    return _open(real, [path.resolve() for path in but])


def _open(path: Path, but: Collection[Path]) -> Path | None:
    if path.is_symlink() or path in but:
        return None
    if not any(end.is_relative_to(path) for end in but):
        return path if path.stat().st_mode & stat.S_IRWXO else None
    return next(filter(None, (_open(inner, but) for inner in sorted(path.iterdir()))), None)


def close_runs(runs: Path, but: Path) -> None:
    """Close the runs in a folder, except one, to everybody but root and their own users."""
    for path in _folders(runs) if runs != but else ():
        for run in (path,) if (path / "private").is_dir() else path.iterdir():
            if run != but:
                _close(run)


def _folders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]
    except FileNotFoundError:
        return []


def _close_all(folder: Path, but: Collection[str]) -> None:
    """Close everything in a folder, except these names, to users other than its owner."""
    with contextlib.suppress(FileNotFoundError):
        for path in list(folder.iterdir()):
            if path.name not in but:
                _close(path, 0o700)


def _close(path: Path, left: int = 0o770) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            if mode & 0o777 & ~left:
                os.fchmod(handle, mode & (left | 0o7000))
        finally:
            os.close(handle)


def set_rights(folder: Path, user: int, group: int, mode: int) -> None:
    """Set owner, group and mode of a folder; does nothing if there is no such folder."""
    with contextlib.suppress(FileNotFoundError):
        place = os.open(folder, _FOLDER)
        try:
            found = os.fstat(place)
            if (found.st_uid, found.st_gid) != (user, group):
                os.fchown(place, user, group)
            if stat.S_IMODE(os.fstat(place).st_mode) != mode:
                os.fchmod(place, mode)
        finally:
            os.close(place)


def _give_all(folder: Path, user: int, skipped: Path | None = None) -> None:
    """Give everything in a folder to a user. A file with several names that the folder's owner does not own is left:
    somebody may have put it there to be given a file of others."""
    owner = os.lstat(folder).st_uid
    for place, folders, files in _walk(folder, skipped):
        for name in (*folders, *files):
            found = os.stat(name, dir_fd=place, follow_symlinks=False)
            is_foreign = stat.S_ISREG(found.st_mode) and found.st_nlink > 1 and found.st_uid != owner
            if (found.st_uid, found.st_gid) != (user, user) and not is_foreign:
                os.chown(name, user, user, dir_fd=place, follow_symlinks=False)


def _let_read(folder: Path, group: int, owner: int = _ROOT) -> None:
    """Let a group read a folder that belongs to `owner`; files that are added later have the group too."""
    for place, _, files in _walk(folder):
        found = os.fstat(place)
        if (found.st_gid, stat.S_IMODE(found.st_mode)) != (group, 0o2750):
            os.fchown(place, owner, group)
            os.fchmod(place, 0o2750)
        for name in files:
            _share_file(name, place, group, 0o500)


def _share_file(name: str, place: int, group: int, rights: int) -> None:
    """Give a group those of the `rights` on a file that its owner has. A file with several names stays as it is."""
    with contextlib.suppress(FileNotFoundError):
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or _is_shared(found, group, rights):
            return
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
        try:
            if stat.S_ISREG((now := os.fstat(file)).st_mode) and now.st_nlink == 1:
                os.fchown(file, -1, group)
                os.fchmod(file, _shared_mode(now, rights))
        finally:
            os.close(file)


def _is_shared(file: os.stat_result, group: int, rights: int) -> bool:
    return (file.st_gid, stat.S_IMODE(file.st_mode)) == (group, _shared_mode(file, rights))


def _shared_mode(file: os.stat_result, rights: int) -> int:
    mode = stat.S_IMODE(file.st_mode)
    return (mode | (mode & rights) >> 3) & ~0o007


def _walk(folder: Path, skipped: Path | None = None) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield each folder from this one down, as a descriptor, with the names of the folders and of everything else in
    it."""
    if folder.is_symlink() or not folder.is_dir():
        return
    try:
        for path, folders, files, place in os.fwalk(folder):
            links = [
                name for name in folders if stat.S_ISLNK(os.stat(name, dir_fd=place, follow_symlinks=False).st_mode)
            ]
            if skipped is not None and skipped.parent == Path(path):
                folders[:] = [name for name in folders if name != skipped.name]
            yield place, [name for name in folders if name not in links], [*files, *links]
    except RecursionError:
        raise OSError(f"the folders in {folder} lie too deep in each other") from None
