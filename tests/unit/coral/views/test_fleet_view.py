"""What is shown of a fleet: why it stands as it does, for programs and in words."""

import pytest

from coral.fleet.agent_state import Agent, Phase, Stall
from coral.fleet.reasons import Budget, BudgetKey, Finding, Reason, ReasonKind, RunEnd, RunEndKind
from coral.fleet.run_state import Fleet, Run
from coral.views.fleet_view import agents_of, state_of

LEFT = RunEnd(RunEndKind.REQUEST, detail="an upgrade")
USED_UP = RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 4))
SAID = {
    "kind": "budget",
    "budget": {"key": "attempts", "limit": 4},
    "text": "the budget of 4 attempts is used up",
}


@pytest.mark.parametrize(
    ("run", "state", "reason"),
    [
        (Run(), "running", None),
        (Run(stopping=USED_UP), "stopping", SAID),
        (Run(stopping=USED_UP, finished=USED_UP), "stopped", SAID),
        (Run(detached_reason=LEFT), "left", {"kind": "request", "detail": "an upgrade", "text": "an upgrade"}),
    ],
)
def test_a_run_says_how_it_stands_and_why(run: Run, state: str, reason: object) -> None:
    assert state_of(run) == {"state": state, "reason": reason}


def test_an_agent_says_why_it_waits_and_what_was_done_about_it() -> None:
    reason = Reason(ReasonKind.CRASHED, detail="out of memory")
    stall = Stall(escalations=1, finding=Finding.NO_PROGRESS, lasted=7200.0)
    fleet = Fleet(agents={"ann": Agent(name="ann", phase=Phase.WAITING, reason=reason, stall=stall)})
    (shown,) = agents_of(fleet, 0.0)
    assert (shown["phase"], shown["reason"]) == (
        "waiting",
        {"kind": "crashed", "detail": "out of memory", "text": "crashed: out of memory"},
    )
    assert shown["stall"] == {
        "kind": "stalled",
        "finding": "no_progress",
        "count": 1,
        "seconds": 7200.0,
        "text": "nudged: no progress for 2 h",
    }
    (shown,) = agents_of(Fleet(agents={"ann": Agent(name="ann")}), 0.0)
    assert (shown["reason"], shown["stall"]) == ({"kind": "start", "text": "start"}, None)
