"""What a sealed program can reach, as paths: the agent's own part of the run. Also makes the command line of
bubblewrap, which enforces that.

Levels, the strongest first: `bubblewrap` (own namespaces, no capabilities, the machine's files read-only), `landlock`
(the same files, no capabilities, but the machine's processes and temporary folders are shared with all), `user` (a user
of its own, which can reach its own files and what everybody may read: see `workspace.owner`) and `none`. A sealed
program finds each file that it may see at the same path as outside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from workspace.layout import Layout, folder_of_runs

PROBE_SECONDS = 20.0
PRIVATE = (Path("/tmp"), Path("/var/tmp"), Path("/run"))
_NAME_SERVICE = (Path("/run/systemd/resolve"), Path("/run/resolvconf"), Path("/run/nscd"), Path("/run/current-system"))
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")  # below /dev
_GRAPHICS = ("nvidia*", "kfd", "dri", "dxg")  # the same
# Process 1 of the sandbox: it outlives the signals that end the program, and exits with the program's code. When it
# ends, the kernel ends all other processes of the sandbox.
_INIT = ("/bin/sh", "-c", 'trap : INT TERM HUP; "$@"; exit $?', "init")


class Level(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    LANDLOCK = "landlock"
    USER = "user"
    NONE = "none"


class Access(StrEnum):
    """How a path appears in the sandbox. HIDDEN: as an empty folder or file. PRIVATE: as an empty folder that the
    program can write to, and that ends with the program; with Landlock, it cannot be opened. READ, WRITE: as it is;
    with Landlock, it can be listed even if something in it is hidden, and so can the hidden part."""

    HIDDEN = "hidden"
    PRIVATE = "private"
    READ = "read"
    WRITE = "write"


# By resolved path. An access holds for everything below, except paths that have an access of their own. What no path
# covers is READ.
View = Mapping[Path, Access]


def view_of_agent(
    layout: Layout,
    agent: str,
    level: Level = Level.BUBBLEWRAP,
    *,
    share: bool,
    hidden: Iterable[Path],
    read: Iterable[Path],
    write: Iterable[Path],
    modules: Iterable[Path] = (),
) -> dict[Path, Access]:
    """Return what the programs of an agent can read and write, at this level.

    `hidden`: folders outside the run, such as the task's. `read`: paths that stay readable inside a hidden or private
    folder, unless they are in the run. `write`: files and folders of the user that the programs can change. `modules`:
    folders from which Python imports, which it lists.
    """
    hidden_folders = [path.resolve() for path in (folder_of_runs(layout), *hidden)]
    view = dict.fromkeys(PRIVATE, Access.PRIVATE) | dict.fromkeys(hidden_folders, Access.HIDDEN)

    def is_allowed(path: Path) -> bool:
        """Return whether the path may be shown: not if it is in the run, nor if it is a link from elsewhere into a
        hidden folder, which an agent may have made."""
        real, named = path.resolve(), Path(os.path.normpath(path))
        leads_in = _lies_in(real, hidden_folders) and not _lies_in(named, hidden_folders)
        return not leads_in and not _lies_in(real, [layout.root])

    importable = list(modules)
    view |= _shown_again((path for path in (*_NAME_SERVICE, *read, *importable) if is_allowed(path)), importable, view)
    view |= {path.resolve(): Access.WRITE for path in write if is_allowed(path)}
    inboxes, replies = layout.attempts / "inbox", layout.attempts / "replies"
    readable = [layout.attempts, layout.heartbeats, layout.root / "grades", layout.logs(agent), layout.hub / "objects"]
    readable += [layout.history] if share else []
    own = (layout.clone(agent), layout.state(agent), layout.shared_of(agent, share), inboxes / agent)
    of_run = dict.fromkeys(readable, Access.READ)
    # Landlock cannot hide them in a folder to which files are added: what is in there will be published anyway.
    of_run |= {} if level is Level.LANDLOCK else {inboxes: Access.HIDDEN, replies: Access.HIDDEN}
    of_run |= dict.fromkeys((replies / agent, layout.replies_to(agent)), Access.READ)
    of_run |= dict.fromkeys((*own, layout.requests_of(agent)), Access.WRITE)
    # A link would show what it leads to. An agent that was not sealed may have laid it there.
    return view | {path: access for path, access in of_run.items() if not path.is_symlink()}


def view_of_grader(
    *,
    hidden: Iterable[Path],
    private: Iterable[Path],
    read: Iterable[Path],
    write: Iterable[Path],
    modules: Iterable[Path],
    network: bool,
) -> dict[Path, Access]:
    """Return what a grader can read and write. `read`: paths that stay readable inside a hidden or private folder.
    `modules`: folders from which Python imports. `network`: whether the grader looks up names of other machines."""
    hidden_folders = [path.resolve() for path in hidden]
    view = {path.resolve(): Access.PRIVATE for path in private} | dict.fromkeys(hidden_folders, Access.HIDDEN)
    importable = list(modules)
    view |= _shown_again((*(_NAME_SERVICE if network else ()), *read, *importable), importable, view)
    return view | {path.resolve(): Access.WRITE for path in write}


def _shown_again(paths: Iterable[Path], modules: Iterable[Path], view: View) -> dict[Path, Access]:
    """Return the paths that the view would hide, because they are in a hidden or private folder, with READ access. Also
    folders of modules that contain such a folder: with Landlock, Python could not list them."""
    covered = [path for path in map(Path.resolve, paths) if path not in view and set(view) & set(path.parents)]
    around = [path for path in map(Path.resolve, modules) if any(path in top.parents for top in view)]
    return dict.fromkeys([*covered, *around], Access.READ)


def _lies_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def bubblewrap(
    argv: Sequence[str], view: View, folder: Path, *, network: bool = True, space: int | None = None
) -> list[str]:
    """Return the arguments that start a program in the sandbox, in `folder`. Paths of the view that do not exist are
    left out. `space`: bytes that each of its folders in memory may hold, if this bubblewrap can limit that."""
    line = [shutil.which("bwrap") or "bwrap", "--as-pid-1", "--new-session", "--cap-drop", "ALL"]
    line += [] if os.geteuid() == 0 else ["--unshare-user", "--disable-userns"]
    line += [] if network else ["--unshare-net"]
    # /proc/sys must not be written to: root's files there stay root's, whatever capabilities are dropped.
    line += ["--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    line += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for device in map(str, _graphics()):
        line += ["--dev-bind-try", device, device]
    in_memory = ["--size", str(space), "--tmpfs"] if space is not None and _has_sizes() else ["--tmpfs"]
    line += [*in_memory, "/dev/shm"]
    found = [(str(path), access) for path, access in sorted(view.items()) if path.exists()]
    for place, access in found:
        match access:
            case Access.HIDDEN if not Path(place).is_dir():
                line += ["--ro-bind", os.devnull, place]
            case Access.HIDDEN:
                line += ["--tmpfs", place]
            case Access.PRIVATE:
                line += [*in_memory, place]
            case Access.READ:
                line += ["--ro-bind", place, place]
            case Access.WRITE:
                line += ["--bind", place, place]
    # After the rest, for which bubblewrap makes folders in there. Read-only, or what a program writes there is lost.
    folders = ["/dev", *(place for place, access in found if access is Access.HIDDEN and Path(place).is_dir())]
    line += [word for place in folders for word in ("--remount-ro", place)]
    return [*line, "--chdir", str(folder), "--", *_INIT, *argv]


def with_devices(view: View) -> dict[Path, Access]:
    """Return the view with the devices that every program has, one by one: if all were shown, root could open the
    disk."""
    devices = [*(Path("/dev", name) for name in _DEVICES), *_graphics()]
    return {Path("/dev"): Access.HIDDEN, **dict.fromkeys(devices, Access.WRITE), **view}


def _graphics() -> list[Path]:
    return sorted(path for name in _GRAPHICS for path in Path("/dev").glob(name))


@cache
def _has_sizes() -> bool:
    """Return whether bubblewrap can limit a folder in memory, which it can from version 0.7 on."""
    try:
        words = subprocess.run(
            ["bwrap", "--help"], capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return "--size " in words.stdout + words.stderr


@cache
def bubblewrap_problem() -> str:
    """Return why bubblewrap does not work on this machine; "" if it works. It is tried once, which takes some 10 ms."""
    if sys.platform == "darwin":
        return "there is no sandbox for macOS"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    # Without the network, as for graders: some machines allow all but that.
    line = bubblewrap(["true"], dict.fromkeys(PRIVATE, Access.PRIVATE), Path("/"), network=False)
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be started: {error}"
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return "this kernel does not name the children of a process, by which a sealed program is interrupted"
    words = done.stderr.strip() or f"exit code {done.returncode}"
    return f"bubblewrap does not work here: {words}" if done.returncode else ""
