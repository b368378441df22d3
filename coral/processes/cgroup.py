"""Control groups: the kernel's own list of every process of a launch, where one may be made.

A child enters its group while it is blocked before its program starts, and no process that it starts can leave the
group by a fork, a session or an environment of its own. A group is a folder below our own group, one for each launch,
and is removed when the launch is over.
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
ENTER = f'echo 0 >"$1/{_PROCS}"'  # for a shell, which enters the group that is its first argument


class Groups:
    """The groups of one run, in a folder with its name. Where groups may not be made there are none, and that is no
    error."""

    def __init__(self, run: str) -> None:
        own = own_group()
        self._folder = "" if own is None else f"{own}/{_NAME}{run}"
        self.remove_empty()
        if own is not None:
            _remove_abandoned(own)

    def make(self, name: str) -> str:
        """Make a group for one launch, and return its path; "" where none may be made."""
        if not self._folder:
            return ""
        group = f"{self._folder}/{name}"
        try:
            Path(group).mkdir(parents=True, exist_ok=True)
        except OSError:
            return ""
        return group

    def remove_empty(self) -> None:
        """Remove the groups without a process, which a supervisor that was killed has left."""
        _remove_tree(self._folder)


def own_group(own: Path = _OWN, mounts: Path = _MOUNTS) -> Path | None:
    """Return the folder of our own control group (version 2); None where there is none."""
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
    """Return the pids of every process in a group and in the groups inside it."""
    found: list[int] = []
    for folder in _tree(group):
        with contextlib.suppress(OSError), open(f"{folder}/{_PROCS}", "rb", buffering=0) as file:
            found += [int(pid) for pid in file.readall().split()]
    return [pid for pid in found if pid > 0]  # 0 stands for a process that another namespace hides


def kill(group: str) -> None:
    """Send SIGKILL to every process in the group at once: none can escape by a fork."""
    if group:
        # Kernels before 5.14 cannot: then the processes are killed one by one, as where there is no group.
        with contextlib.suppress(OSError), open(f"{group}/{_KILL}", "wb", buffering=0) as file:
            file.write(b"1")


def remove(group: str) -> None:
    """Remove a launch's group and those inside it, unless a process is in them; and its run's folder with the last."""
    if group:
        _remove_tree(group)
        with contextlib.suppress(OSError):
            Path(group).parent.rmdir()


def _remove_abandoned(own: Path) -> None:
    """Remove empty groups of runs that nobody resumed. Groups younger than OLD_SECONDS stay: a process may be about to
    enter one."""
    with contextlib.suppress(OSError):
        for run in [path for path in own.iterdir() if path.name.startswith(_NAME)]:
            _remove_tree(str(run), OLD_SECONDS)


def _remove_tree(folder: str, older_than: float = float("-inf")) -> None:
    for group in reversed(_tree(folder)):
        with contextlib.suppress(OSError):
            if time.time() - Path(group).stat().st_mtime > older_than:
                Path(group).rmdir()


def _tree(group: str) -> list[str]:
    """Return a group and all groups inside it, each before those inside it."""
    return [folder for folder, _, _ in os.walk(group)] if group else []
