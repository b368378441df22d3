"""Control groups: the kernel's own list of everybody a launch started, where one may be made.

A child enters while it waits at its gate, and nobody that comes of it leaves by a fork, a session or an environment of
its own. A group is a folder below our own group, one for each launch, and goes when the launch is over.
"""

import contextlib
import os
import time
from pathlib import Path

_OWN = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
_NAME = "coral-"
OLD_SECONDS = 3600.0
_PROCS, _KILL = "cgroup.procs", "cgroup.kill"
ENTER = f'echo 0 >"$1/{_PROCS}"'  # a shell that is given a group as its first argument, of itself


class Groups:
    """Those of one run, in a folder with its name. Where none may be made, there are none, and nothing is said."""

    def __init__(self, run: str) -> None:
        own = own_group()
        self._folder = None if own is None else own / f"{_NAME}{run}"
        self.remove_empty()
        if own is not None:
            _sweep(own)

    def make(self, name: str) -> str:
        """A group for one launch, as a path; empty where none may be made."""
        if self._folder is None:
            return ""
        group = self._folder / name
        try:
            group.mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        return str(group)

    def remove_empty(self) -> None:
        """Remove those in which nobody is: what a supervisor that was killed could not."""
        if self._folder is not None:
            _clear(str(self._folder))


def own_group(own: Path = _OWN, mounts: Path = _MOUNTS) -> Path | None:
    """Our own group in the one hierarchy that keeps such lists (version 2); None where none is to be seen."""
    try:
        named = [line[3:] for line in own.read_text().splitlines() if line.startswith("0::")]
        mounted = [line.partition(" - ") for line in mounts.read_text().splitlines()]
    except OSError:
        return None
    places = [before.split()[3:5] for before, _, after in mounted if after.startswith("cgroup2 ")]
    for root, point in places:
        for path in named:
            if ".." not in Path(path).parts and Path(path).is_relative_to(root):
                return Path(point) / Path(path).relative_to(root)
    return None


def members(group: str) -> list[int]:
    """The pids of everybody in a group, and in those that somebody made inside it."""
    found: list[int] = []
    for folder in _tree(group):
        with contextlib.suppress(OSError), open(f"{folder}/{_PROCS}", "rb", buffering=0) as file:
            found += [int(pid) for pid in file.readall().split()]
    return [pid for pid in found if pid > 0]  # 0 is one that another namespace hides


def kill(group: str) -> None:
    """SIGKILL for everybody in it at once: nobody forks away from it."""
    if group:
        # Kernels before 5.14 cannot: then they are killed one by one, as where there is no group.
        with contextlib.suppress(OSError), open(f"{group}/{_KILL}", "wb", buffering=0) as file:
            file.write(b"1")


def remove(group: str) -> None:
    """Remove a launch's group and those inside it, as far as nobody is in them; and with the last its run's folder."""
    if group:
        _clear(group)
        with contextlib.suppress(OSError):
            Path(group).parent.rmdir()


def _sweep(own: Path) -> None:
    """Remove what runs have left that nobody ever resumed. What is new may be about to be entered."""
    with contextlib.suppress(OSError):
        for run in [str(path) for path in own.iterdir() if path.name.startswith(_NAME)]:
            for group in reversed(_tree(run)):
                with contextlib.suppress(OSError):
                    if time.time() - Path(group).stat().st_mtime > OLD_SECONDS:
                        Path(group).rmdir()


def _clear(folder: str) -> None:
    for group in reversed(_tree(folder)):
        with contextlib.suppress(OSError):
            Path(group).rmdir()


def _tree(group: str) -> list[str]:
    """A group and those inside it, each before its own."""
    return [folder for folder, _, _ in os.walk(group)] if group else []
