"""What must hold of agents that come to nothing, whatever happens: random histories in a simulated world.

To look longer: `TIMES=50 pytest -o timeout=0 tests/decisions/properties/test_stall_properties.py`.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from moves import DEATH, STALLS, TIME, TROUBLE, WORK, History, calm, over, play
from world import Turn, World
from world_log import (
    assert_counted_once,
    assert_owed_once,
    assert_received_once,
    assert_repeated_only_unheard,
    log_lines,
    performed,
    resumes,
)

from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import LIVE, Agent, Phase
from coral.fleet.agents.stalls import FRESH, RESTING, reason_of
from coral.fleet.policy import REST_SECONDS, ttl_of
from coral.fleet.reasons import ReasonKind

OUTPUT = ["print", "print", "wait", "wait", "look"]


def live(history: History) -> World:
    """Under the rules of a run of today."""
    rules, moves = history
    return play((replace(rules, no_progress=rules.no_progress or 250.0), moves))


@dataclass
class Watched:
    """What a bystander counts of one agent: how long it has worked since its last progress or the last step."""

    worked: float = 0.0
    silent: float = 0.0
    steps: int = 0
    launch: int = 0
    edits: int = 0


def progress_in(turn: Turn, name: str, seen: Watched) -> bool:
    """Whether something came of its work in this turn, by its events."""
    found = turn.after.agents[name].submitted > turn.before.agents[name].submitted
    for event in turn.events:
        if isinstance(event, on.OutputSeen) and (event.agent, event.launch) == (name, seen.launch):
            found |= event.count.edits > seen.edits and turn.before.agents[name].phase in LIVE
            seen.edits = max(seen.edits, event.count.edits)
        if isinstance(event, on.EditsScanned) and event.agent == name and event.edited is not None:
            at, since = turn.clock - event.edited, turn.before.agents[name].stall.since
            found |= since is not None and at > since
    return found


def since_edit(turn: Turn, agent: Agent) -> float:
    """How long it has worked since the edit that a look has found."""
    looked = (event for event in turn.events if isinstance(event, on.EditsScanned) and event.agent == agent.name)
    return min((scan.edited for scan in looked if scan.edited is not None), default=0.0)


def is_of(event: on.Event, agent: Agent) -> bool:
    """Whether it is heard of this launch."""
    return isinstance(event, on.OutputSeen) and (event.agent, event.launch) == (agent.name, agent.launch)


def steps(world: World) -> Iterator[tuple[Turn, Agent, Watched]]:
    """Each step that was taken, with the agent after it and what was counted before it."""
    watched: dict[str, Watched] = defaultdict(Watched)
    last = 0.0
    stalled = {(id(turn), action.agent) for turn, action in log_lines(world, "stalled")}
    for turn in world.log:
        for name, after in turn.after.agents.items():
            seen, before = watched[name], turn.before.agents.get(name)
            if before is None:
                seen.launch = after.launch
                continue
            if before.phase is Phase.RUNNING:
                seen.worked += turn.clock - last
                seen.silent += turn.clock - last
            if any(is_of(event, before) for event in turn.events):
                seen.silent = 0.0
            if progress_in(turn, name, seen):
                seen.worked, seen.steps = since_edit(turn, before), 0
            if (id(turn), name) in stalled:
                seen.steps += 1
                yield turn, after, seen
                seen.worked = 0.0
            if after.launch != seen.launch:
                seen.launch, seen.edits, seen.silent = after.launch, 0, 0.0
        last = turn.clock


@over(STALLS, STALLS, WORK, TIME, OUTPUT, TROUBLE, DEATH, examples=25)
def test_no_step_is_taken_before_its_whole_time_and_progress_begins_anew(history: History) -> None:
    world = live(history)
    rules = world.rules
    for turn, agent, seen in steps(world):
        assert agent.stall.escalations == seen.steps
        assert rules.no_progress is not None
        if agent.stall.finding == "silent":
            assert seen.silent >= ttl_of(agent, rules) - 1e-6
            assert seen.worked >= ttl_of(agent, rules) - 1e-6
        else:
            assert seen.worked >= rules.no_progress - 1e-6
        assert not any(
            pending.submission.agent == agent.name and turn.clock < pending.waited_until
            for pending in turn.after.pending.values()
        )


@over(STALLS, STALLS, WORK, TIME, OUTPUT, TROUBLE, DEATH, ["stop"], examples=25)
def test_nothing_of_an_agent_that_stalls_is_lost(history: History) -> None:
    world = live(history)
    calm(world)
    for rule in (assert_counted_once, assert_owed_once, assert_received_once, assert_repeated_only_unheard):
        rule(world)


@over(STALLS, STALLS, WORK, TIME, OUTPUT, DEATH, examples=25)
def test_a_fresh_session_comes_with_a_reason_and_carries_what_is_owed(history: History) -> None:
    world = live(history)
    for turn, spawn in performed(world, do.Spawn):
        before, after = turn.before.agents.get(spawn.agent), turn.after.agents[spawn.agent]
        assert spawn.messages == after.pending_messages
        assert set(after.in_flight) == {message.id for message in after.pending_messages}
        if before is None or before.session is None or spawn.session is not None:
            continue
        ended = [event for event in turn.events if isinstance(event, on.Exited) and event.agent == spawn.agent]
        unknown = any(event.ending is on.Ending.UNKNOWN_SESSION for event in ended)
        stalled = before.stall.escalations >= FRESH
        assert unknown or stalled or spawn.reason.kind in (ReasonKind.SESSION_COMPACTED, ReasonKind.SESSION_LONG)


@over(STALLS, STALLS, WORK, TIME, OUTPUT, TROUBLE, DEATH, examples=25)
def test_who_rests_does_so_after_every_other_step_and_as_long_as_is_said(history: History) -> None:
    world = live(history)
    begun: dict[str, Turn] = {}
    for turn in world.log:
        for name, agent in turn.after.agents.items():
            resting = agent.phase is Phase.PARKED and agent.reason.kind is ReasonKind.STALLED
            if resting and name not in begun:
                begun[name] = turn
                assert agent.session is None
                if agent.stall.escalations:
                    assert agent.stall.escalations >= RESTING
                    assert agent.reason == reason_of(agent.stall)
            elif not resting and name in begun:
                began = begun.pop(name)
                spawned = any(isinstance(action, do.Spawn) and action.agent == name for action in turn.actions)
                if spawned and not resumes(turn):
                    assert turn.clock >= began.clock + REST_SECONDS


@over(STALLS, STALLS, TIME, OUTPUT, DEATH, examples=25)
def test_nobody_is_cut_off_for_an_outage_who_had_an_answer(history: History) -> None:
    rules, moves = history
    world = live((replace(rules, outage=rules.outage or 50.0), moves))
    for turn, action in performed(world, do.Interrupt):
        agent = turn.after.agents.get(action.who)
        if agent is not None and agent.reason.kind is ReasonKind.OUTAGE and not resumes(turn):
            assert agent.retrying_since is not None
            enough = world.rules.retries is not None and agent.output_counts.in_a_row >= world.rules.retries
            assert enough or turn.clock >= agent.retrying_since + (world.rules.outage or 0.0)
            assert agent.output_counts.in_a_row > 0
