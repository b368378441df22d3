"""What processes use of the machine's memory and cores; which of them the kernel ends first when memory runs out.

`psutil` takes 9 ms to import: whoever does not measure does not wait for it.
"""

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from coral.processes.cgroup import own_group

if TYPE_CHECKING:
    import psutil

# The kernel adds so many thousandths of all memory to what a process uses, and ends the largest. An agent goes before
# the supervisor, and a grade, which can be repeated, before an agent.
AGENT, GRADE = 300, 800


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """`threads`: of all processes, each of which has at least one. `memory`: in bytes."""

    threads: int
    memory: int


def usage_of(pids: Iterable[int], exact_above: int) -> ProcessUse:
    """What these processes use together. Memory that several of them share counts once for each; if that is more than
    `exact_above` bytes, it is divided among them, which takes longer to find out."""
    import psutil

    processes = []
    threads = memory = 0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            threads += process.num_threads()
            memory += process.memory_info().rss
            processes.append(process)
    if memory > exact_above:
        memory = sum(map(_proportional, processes))
    return ProcessUse(threads, memory)


def cpu_seconds(pids: Iterable[int]) -> float:
    """Seconds of all cores that these processes have used, and those that they started and that have ended."""
    import psutil

    seconds = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            seconds += times.user + times.system + times.children_user + times.children_system
    return seconds


def machine_memory() -> int:
    """Bytes of memory that this machine has, or that the control group of this process may use."""
    import psutil

    found = [int(psutil.virtual_memory().total)]
    limits = [Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]  # of the first version of control groups
    if (own := own_group()) is not None:
        limits.append(own / "memory.max")
    for path in limits:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or no limit
            found.append(int(path.read_text()))
    return min(found)


def end_first(pid: int, adjustment: int) -> None:
    """Have the kernel end this process, and those it starts, before others when memory runs out: AGENT or GRADE."""
    with contextlib.suppress(OSError):  # it is gone, or this is another system
        Path(f"/proc/{pid}/oom_score_adj").write_text(str(adjustment))


def _proportional(process: "psutil.Process") -> int:
    import psutil

    with contextlib.suppress(psutil.Error):
        full = process.memory_full_info()
        return int(getattr(full, "pss", full.uss))
    return 0
