"""Seals the programs of an agent: of the run they reach what is the agent's own, and of other processes nothing.

Levels: `bubblewrap` (namespaces of their own, no capabilities, the machine's files read-only) and `none`. A sealed
program keeps the network, the user's home for reading, and every path: what it may see has the same place inside.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path

from workspace.layout import Layout

PROBE_SECONDS = 20.0
PRIVATE = (Path("/tmp"), Path("/var/tmp"), Path("/run"))
_NAME_SERVICE = (Path("/run/systemd/resolve"), Path("/run/resolvconf"), Path("/run/nscd"), Path("/run/current-system"))
_GRAPHICS = ("nvidia*", "kfd", "dri", "dxg")  # devices below /dev
# Process 1 of the namespace. It outlives the signals that end the program, and reports the program's exit code; when it
# ends, so does whatever the program has left.
_FIRST = ("/bin/sh", "-c", 'trap : INT TERM HUP; "$@"; exit $?', "init")


class Level(StrEnum):
    BUBBLEWRAP = "bubblewrap"
    NONE = "none"


class Access(StrEnum):
    """HIDDEN: an empty folder is there instead. PRIVATE: one that the program may write to."""

    HIDDEN = "hidden"
    PRIVATE = "private"
    READ = "read"
    WRITE = "write"


View = Mapping[Path, Access]  # by resolved path; of two paths, one below the other, the longer one decides for itself


def view_of_agent(
    layout: Layout, agent: str, *, share: bool, hidden: Iterable[Path], read: Iterable[Path], write: Iterable[Path]
) -> dict[Path, Access]:
    """What an agent's programs see. `hidden`: folders outside the run, such as the task's; `read`: what they need of
    the machine, wherever it lies; `write`: files and folders of the user that they may change."""
    runs = [folder for folder in layout.root.parents[:2] if folder.name == "runs"] or [layout.root]
    hides = [path.resolve() for path in (*runs, *hidden)]
    view = dict.fromkeys(PRIVATE, Access.PRIVATE) | dict.fromkeys(hides, Access.HIDDEN)
    covers = tuple(view)

    def may_show(path: Path) -> bool:
        """Not a part of the run, and in what is hidden only if it was named there: agents lay links."""
        real, named = path.resolve(), Path(os.path.normpath(path))
        leads_in = _lies_in(real, hides) and not _lies_in(named, hides)
        return not leads_in and not _lies_in(real, [layout.root])

    needed = [path.resolve() for path in (*_NAME_SERVICE, *read) if may_show(path)]
    view |= {path: Access.READ for path in needed if path not in hides and any(c in path.parents for c in covers)}
    view |= {path.resolve(): Access.WRITE for path in write if may_show(path)}
    inboxes, replies = layout.attempts / "inbox", layout.attempts / "replies"
    readable = (layout.attempts, layout.heartbeats, layout.root / "grades", layout.logs(agent), layout.hub / "objects")
    own = (layout.clone(agent), layout.state(agent), layout.shared_of(agent, share), inboxes / agent)
    of_run = dict.fromkeys(readable, Access.READ) | {inboxes: Access.HIDDEN, replies: Access.HIDDEN}
    of_run |= dict.fromkeys((replies / agent, layout.replies_to(agent)), Access.READ)
    of_run |= dict.fromkeys((*own, layout.requests_of(agent)), Access.WRITE)
    # A link would show what it leads to. An agent that was not sealed may have laid it there.
    return view | {path: access for path, access in of_run.items() if not path.is_symlink()}


def _lies_in(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def sealed(argv: Sequence[str], view: View, folder: Path) -> list[str]:
    """The arguments that start a program in a folder of its view. What does not exist is left out."""
    line = [shutil.which("bwrap") or "bwrap", "--as-pid-1", "--new-session", "--cap-drop", "ALL"]
    line += [] if os.geteuid() == 0 else ["--unshare-user", "--disable-userns"]
    # /proc/sys must not be written to: root's files there stay root's, whatever capabilities are dropped.
    line += ["--unshare-pid", "--unshare-ipc", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    line += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for name in _GRAPHICS:
        for device in sorted(map(str, Path("/dev").glob(name))):
            line += ["--dev-bind-try", device, device]
    found = [(str(path), access) for path, access in sorted(view.items()) if path.exists()]
    for place, access in found:
        match access:
            case Access.HIDDEN | Access.PRIVATE:
                line += ["--tmpfs", place]
            case Access.READ:
                line += ["--ro-bind", place, place]
            case Access.WRITE:
                line += ["--bind", place, place]
    # Only now, for the places of what lies below had to be made. What is written there would be lost without a word.
    line += [word for place, access in found if access is Access.HIDDEN for word in ("--remount-ro", place)]
    return [*line, "--chdir", str(folder), "--", *_FIRST, *argv]


@cache
def problem() -> str:
    """Why nothing can be sealed here; empty where it can. Tries it."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    line = sealed(["true"], dict.fromkeys(PRIVATE, Access.PRIVATE), Path("/"))
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap cannot be started: {error}"
    if not Path(f"/proc/self/task/{os.getpid()}/children").exists():
        return "this kernel does not name the children of a process, by which a sealed program is interrupted"
    words = done.stderr.strip() or f"exit code {done.returncode}"
    return f"bubblewrap does not work here: {words}" if done.returncode else ""
