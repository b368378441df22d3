"""A journal damaged anywhere: whatever happened since, each attempt counts once and no number is given twice."""

import json

from moves import DEATH, STEER, TIME, TROUBLE, WORK, History, over, play

from coral.fleet import events as on
from coral.fleet.agent_state import Phase
from coral.fleet.decide import decide
from coral.journal.lost_lines import read_lost


@over(WORK, WORK, TIME, TROUBLE, DEATH, STEER)
def test_what_was_published_counts_once_and_what_was_accepted_is_not_forgotten(history: History) -> None:
    world = play(history)
    lines = [json.loads(line) for line in world.lines if line.endswith(b"\n")]
    last = world.log[-1]
    for place in range(1, len(lines), max(len(lines) // 4, 1)):
        back, lost = world.log[place].before, read_lost(lines[place:])
        attempts = sorted(lost.attempts.values(), key=lambda attempt: attempt.order)
        numbers = [back.run.next_number, last.after.run.next_number]
        event = on.RolledBack(
            file="000001.jsonl", line=place + 1, why="flipped", lines=len(lines) - place, kept="kept",
            attempts=tuple(attempt for attempt in attempts if attempt.order > back.run.order),
            accepted=tuple(lost.accepted[number] for number in sorted(lost.accepted)),
            members=lost.members, counts={**lost.counts, "next_number": max(numbers)},
            orders=lost.orders, budgets=lost.budgets, is_held=lost.is_held,
        )  # fmt: skip
        now = on.Moment(run_time=last.clock + 1, wall_time="")
        after, _ = decide(back, (on.Resumed(), event), now, world.rules)
        assert after.run.order == last.after.run.order
        assert after.run.progress == last.after.run.progress
        assert after.run.best == last.after.run.best
        assert after.run.failures == last.after.run.failures
        assert after.run.next_number >= last.after.run.next_number
        assert set(after.agents) == set(last.after.agents)
        assert after.run.members == last.after.run.members
        assert after.run.budgets == last.after.run.budgets
        assert after.run.is_grading_held == last.after.run.is_grading_held
        for name, agent in after.agents.items():
            assert agent.progress == last.after.agents[name].progress
            assert agent.submitted == last.after.agents[name].submitted
            if Phase.RETIRED not in (agent.phase, last.after.agents[name].phase):
                assert agent.order == last.after.agents[name].order
        published = {attempt.number for attempt in attempts}
        assert set(last.after.pending) - published - set(back.pending) <= set(after.pending) | _own(last.after.pending)
        # Told once more, it changes nothing of what counts.
        twice, _ = decide(after, (event,), now, world.rules)
        assert (twice.run.order, twice.run.progress) == (after.run.order, after.run.progress)


def _own(pending) -> set[int]:
    """The supervisor's own grades, which it asks for again by itself."""
    return {number for number, attempt in pending.items() if not attempt.is_submitted}
