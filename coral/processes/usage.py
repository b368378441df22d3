"""How much of the machine's memory and cores processes use, and which of them the kernel ends first when memory runs
out.

`psutil` takes 9 ms to import, so it is imported only by functions that measure.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coral.processes.cgroup import own_group

if TYPE_CHECKING:
    import psutil

# The kernel adds so many thousandths of all memory to what a process uses, and ends the largest. An agent goes before
# the supervisor, and a grade, which can be repeated, before an agent.
AGENT, GRADE = 300, 800
_ESCAPE = re.compile(r"\\([0-7]{3})")  # a character of a path, where the kernel lists mounts


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """The use of some processes together. `threads`: at least one for each process. `memory`: in bytes."""

    threads: int
    memory: int


def usage_of(pids: Iterable[int], exact_above: int) -> ProcessUse:
    """Return how much these processes use together, with the files that lie in memory in their sandboxes. Memory that
    several of them share counts once for each; if the sum is more than `exact_above` bytes, shared memory is divided
    among them, which takes longer to find out."""
    import psutil

    processes = []
    threads = memory = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            threads += process.num_threads()
            memory += process.memory_info().rss
            processes.append(process)
    files = files_in_memory([process.pid for process in processes])
    if memory + files > exact_above:
        memory = sum(map(_proportional, processes))
        files -= min(files, sum(_shared(process.pid) for process in processes))  # what of the files is in use by them
    return ProcessUse(threads, memory + files)


def files_in_memory(pids: Iterable[int]) -> int:
    """Return how many bytes lie in file systems in memory that these processes have and this one has not: those of
    their sandboxes."""
    known, looked, size = {device for device, _ in _in_memory("self")}, {_mounts_of("self"), ""}, 0
    for pid in pids:
        mounts = _mounts_of(pid)
        if mounts in looked:
            continue
        for device, place in _in_memory(pid):
            with contextlib.suppress(OSError):
                path = f"/proc/{pid}/root{place}"
                if device not in known and Path(path).stat().st_dev == device:  # nothing else was mounted there later
                    disk = os.statvfs(path)
                    size += (disk.f_blocks - disk.f_bfree) * disk.f_frsize
                    known.add(device)
                looked.add(mounts)
    return size


def _mounts_of(pid: int | str) -> str:
    """Return what names the mounts that a process sees; "" if it is gone, or that is not known."""
    with contextlib.suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    return ""


def _in_memory(pid: int | str) -> Iterator[tuple[int, str]]:
    """Yield the device and the place of each file system in memory that a process sees."""
    lines: list[str] = []
    with contextlib.suppress(OSError):
        # The kernel escapes the end of a line in a path, and no other character at which `splitlines` splits.
        lines = Path(f"/proc/{pid}/mountinfo").read_bytes().decode("utf-8", "surrogateescape").split("\n")
    for line in lines:
        about, _, kind = line.partition(" - ")
        if kind.startswith(("tmpfs ", "ramfs ")):
            _, _, device, _, place, *_ = about.split(" ")
            major, minor = device.split(":")
            yield os.makedev(int(major), int(minor)), _ESCAPE.sub(lambda match: chr(int(match[1], 8)), place)


def _shared(pid: int) -> int:
    """Return how many bytes of files in memory, and of memory that has no file and is shared, a process has mapped:
    each byte divided among the processes that have it."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss_Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


def cpu_seconds(pids: Iterable[int]) -> float:
    """Return the processor seconds, on all cores, of these processes and of their children that have ended."""
    import psutil

    seconds = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def machine_memory() -> int:
    """Return how many bytes of memory this machine has, or the control group of this process may use if that is
    less."""
    import psutil

    return min([int(psutil.virtual_memory().total), *(limit for limit, _, _ in _group_limits())])


def free_memory() -> int:
    """Return how many bytes of `machine_memory` programs can still get. Memory in which the system caches files counts
    as free, because it is given up when needed."""
    import psutil

    return min([int(psutil.virtual_memory().available), *_free_of_groups()])


def _free_of_groups() -> Iterator[int]:
    for limit, folder, used in _group_limits():
        with contextlib.suppress(OSError, ValueError):
            yield max(limit - int((folder / used).read_text()) + _kept_of_files(folder), 0)


def _group_limits() -> Iterator[tuple[int, Path, str]]:
    """Yield the memory limits of this process's control groups in bytes, each with the group's folder and the name of
    the file that says how much is used. The groups around our own limit us, too."""
    groups = [(Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")]  # of the first version
    if (own := own_group()) is not None:
        groups += [(group, "memory.max", "memory.current") for group in (own, *own.parents)]
    for folder, limit, used in groups:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or no limit
            yield int((folder / limit).read_text()), folder, used


def _kept_of_files(group: Path) -> int:
    """Return how many bytes the system uses to cache files for this control group; it gives them up when programs need
    them."""
    try:
        counted = [line.split() for line in (group / "memory.stat").read_text().splitlines()]
    except OSError:
        return 0
    return sum(int(size) for name, size in counted if name in ("active_file", "inactive_file"))


def end_first(pid: int, adjustment: int) -> None:
    """Make the kernel end this process, and those it starts, before others when memory runs out. `adjustment`: AGENT or
    GRADE."""
    with contextlib.suppress(OSError):  # it is gone, or this is another system
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(adjustment))


def _proportional(process: "psutil.Process") -> int:
    import psutil

    with contextlib.suppress(psutil.Error):
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.uss))
    return 0
