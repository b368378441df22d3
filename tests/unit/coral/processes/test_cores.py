"""The cores that we may use: those of the machine, or the quota of a control group around us."""

import os
from pathlib import Path

from coral.processes.cores import usable_cores


def test_a_quota_of_any_group_around_ours_counts(tmp_path: Path) -> None:
    ours = tmp_path / "outer" / "inner"
    ours.mkdir(parents=True)
    all_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(ours) == all_cores
    (ours / "cpu.max").write_text("max 100000\n")
    assert usable_cores(ours) == all_cores
    (ours.parent / "cpu.max").write_text("50000 100000\n")
    assert usable_cores(ours) == 1
    (ours.parent / "cpu.max").write_text("99900000 100000\n")
    assert usable_cores(ours) == all_cores
    (ours.parent / "cpu.max").write_text("5 0\n")
    assert usable_cores(ours) == all_cores
    assert usable_cores() >= 1
