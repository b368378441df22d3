"""How many processor cores our processes may use."""

import math
import os
from contextlib import suppress
from pathlib import Path

from coral.processes.cgroup import own_group

_QUOTA = "cpu.max"  # of a control group: microseconds that it may use, in a period of so many; "max" is no limit


def usable_cores(group: Path | None = None) -> int:
    """Return the number of cores that the kernel lets us run on; fewer where a control group, as that of a container,
    has a quota. At least 1; a part of a core counts as one. `group`: the control group, our own if None."""
    group = group or own_group()
    # macOS lacks affinities.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [quota for folder in ((group, *group.parents) if group else ()) if (quota := _quota(folder))]
    return max(1, min([cores, *map(math.ceil, quotas)]))


def _quota(group: Path) -> float | None:
    with suppress(OSError, ValueError, ZeroDivisionError):
        used, period = (group / _QUOTA).read_text().split()
        return int(used) / int(period)
    return None
