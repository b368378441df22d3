"""What is done while the journal cannot be written."""

import errno
import os

import pytest
from stage import Stage

from coral.fleet import actions as do, events as on
from coral.fleet.events import Outcome
from coral.supervisor.degraded import Degraded, reason_of


@pytest.mark.parametrize(("code", "is_full"), [(errno.EDQUOT, True), (errno.EIO, False)])
def test_what_a_grade_wrote_is_removed_if_the_disk_is_full_though_nothing_else_says_so(
    code: int, is_full: bool
) -> None:
    stage, degraded = Stage(), Degraded()
    stage.in_grading(2, "ann")
    crashed = stage.graded(1, outcome=Outcome.CRASHED, reason="it wrote no result")
    error, now = OSError(code, os.strerror(code)), on.Moment(run_time=3, wall_time="")
    actions = degraded.decide(stage.fleet, [crashed], now, stage.rules, error)
    removed = do.CleanUpGrade(number=1, launch=1, whole=True)
    assert actions == ([removed] if is_full else [])
    # The journal has it in this order, when it can be written: nobody is blamed then either.
    known = [on.DiskChecked(problem=reason_of(error))] if is_full else []
    assert degraded.unwritten == [*known, crashed]
    # It is known by now.
    assert degraded.decide(stage.fleet, [], now, stage.rules, error) == []
    assert degraded.unwritten == [*known, crashed]


def test_what_every_check_finds_again_is_kept_once_however_long_it_takes() -> None:
    """All that is kept is decided again at each try to write: a full disk may stay full for days."""
    stage, degraded = Stage(), Degraded()
    stage.in_grading(2, "ann")
    error = OSError(errno.EIO, os.strerror(errno.EIO))
    altered = on.HeartbeatsAltered(owner="ann")
    left = [on.LeftProcesses(who="ann", launch=launch) for launch in (1, 2)]
    damaged = on.RecordsDamaged(altered=(1,))
    restored = on.Restored(item="the journal", found="was deleted", source="memory")
    alive = on.LifeSeen(agent="ann", launch=2)
    for second in range(100):
        now = on.Moment(run_time=second, wall_time="")
        degraded.decide(stage.fleet, [altered, *left, damaged, restored, alive], now, stage.rules, error)
    assert degraded.unwritten == [altered, *left, damaged, restored, alive]
