"""Reads the log of a simulated `World`, and asserts what must hold of it, without the code that decided."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from world import Turn, World

from attempts.progress import Progress, advance_fleet, advance_own, end_stagnation
from attempts.record import IMPROVED, Attempt, Kind, Verdict
from attempts.standing import Standing, advance, without_half
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import PendingMessage, Phase
from coral.fleet.reasons import ReasonKind
from coral.fleet.run_state import FLEET, Fleet
from heartbeats.heartbeat import Scope
from heartbeats.trigger import Elapsed, Every


def owed_by_id(fleet: Fleet) -> dict[str, tuple[str, PendingMessage]]:
    """Return the pending messages by id, each with the name of its agent; "" if it is not assigned."""
    held = {message.id: ("", message) for message in fleet.run.unassigned_messages}
    return held | {
        message.id: (agent.name, message) for agent in fleet.agents.values() for message in agent.pending_messages
    }


def log_lines(world: World, type: str) -> Iterator[tuple[Turn, do.LogEvent]]:
    return ((turn, action) for turn, action in performed(world, do.LogEvent) if action.type == type)


def withdrawn(world: World) -> list[tuple[str, str, str]]:
    """Return agent, name and id of each heartbeat that was withdrawn."""
    why = re.compile(r"(\S+) \((h\d+)\)(?: is overtaken|: the task has changed)")
    found = [(line.agent, why.match(line.text)) for _, line in log_lines(world, "withdrawn")]
    return [(agent, match[1], match[2]) for agent, match in found if match]


def received(world: World) -> list[str]:
    """Return the ids of the messages that were received, one for each time."""
    texts = [line.text for _, line in log_lines(world, "heartbeat")]
    return [id for text in texts for id in re.findall(r"h\d+", text[text.rindex("(") :])]


def created(world: World) -> dict[str, tuple[str, PendingMessage]]:
    """Return every message that was pending after any turn, each with the agent that had it first."""
    seen: dict[str, tuple[str, PendingMessage]] = {}
    for turn in world.log:
        seen = owed_by_id(turn.after) | seen
    return seen


def published(world: World) -> list[Attempt]:
    return sorted(world.records.values(), key=lambda attempt: attempt.order)


def counts(attempt: Attempt) -> bool:
    return attempt.kind is Kind.REAL and attempt.verdict is not Verdict.VOID


def resumes(turn: Turn) -> bool:
    return any(isinstance(event, on.Resumed | on.Opened) for event in turn.events)


def performed(world: World, kind: Any) -> Iterator[tuple[Turn, Any]]:
    """Yield each action of a class, with its turn."""
    for turn in world.log:
        yield from ((turn, action) for action in turn.actions if isinstance(action, kind))


def tally(world: World, owner: str) -> Iterator[tuple[Attempt, int, int]]:
    """Yield the attempts of an owner, each with how many counted by then, and how many in a row of these did not
    improve. A confirmation that proves a new best ends the stagnation of its author and of the fleet."""
    evals, stagnant = 0, 0
    for attempt in published(world)[1:]:
        if attempt.kind is Kind.BASELINE:
            stagnant = 0
        if owner not in (FLEET, attempt.agent):
            continue
        if attempt.kind is Kind.CONFIRM and attempt.verdict is Verdict.NEW_BEST:
            stagnant = 0
        elif counts(attempt):
            improved = attempt.verdict in (IMPROVED if owner != FLEET else (Verdict.NEW_BEST,))
            evals, stagnant = evals + 1, 0 if improved else stagnant + 1
        yield attempt, evals, stagnant


def crossings(world: World, owner: str) -> Counter[tuple[str, int]]:
    """Return how often each heartbeat had to fire at each attempt, by name and number."""
    mine = Counter[tuple[str, int]]()
    for attempt, evals, stagnant in tally(world, owner):
        for default in world.rules.defaults(Scope.FLEET if owner == FLEET else Scope.OWN):
            if counts(attempt) and not isinstance(default.trigger, Elapsed):
                count = evals if isinstance(default.trigger, Every) else stagnant
                mine[default.name, attempt.number] += count > 0 and count % default.trigger.n == 0
    return +mine


# --- after `moves.calm` -----------------------------------------------------------------------------------------------


def assert_counted_once(world: World) -> None:
    """Assert that each submission became one record, with one place in the order of publication."""
    records = published(world)
    assert world.inbox == {}
    assert world.fleet.pending == {}
    assert [attempt.order for attempt in records] == list(range(len(records)))
    handed_in = [attempt.submission for attempt in records if attempt.submission]
    assert len(set(handed_in)) == len(handed_in)
    # A half that a resume has dropped is in no record.
    assert without_half(world.fleet.standing) == without_half(_standing(world, records))
    assert world.fleet.run.progress == _progress(records, FLEET)
    for name, agent in world.fleet.agents.items():
        assert agent.progress == _progress(records, name)


def _standing(world: World, records: list[Attempt]) -> Standing:
    standing = Standing()
    for record in records:
        standing = advance(standing, record, world.rules.scoring)
    return standing


def _progress(records: list[Attempt], owner: str) -> Progress:
    progress = Progress()
    for record in records:
        if record.kind is Kind.BASELINE:
            progress = end_stagnation(progress)
        if owner not in (FLEET, record.agent):
            continue
        if record.kind is Kind.CONFIRM and record.verdict is Verdict.NEW_BEST:
            progress = end_stagnation(progress)
        progress = advance_fleet(progress, record) if owner == FLEET else advance_own(progress, record)
    return progress


def assert_owed_once(world: World) -> None:
    """Assert that each crossing was owed once, except those that were skipped at the limit of a chain of heartbeats."""
    seen, gone = created(world), withdrawn(world)
    cut = [line for _, line in log_lines(world, "skipped") if line.reason and line.reason.kind is ReasonKind.CHAIN]
    for owner in (FLEET, *world.names):
        scope = Scope.FLEET if owner == FLEET else Scope.OWN
        expected = crossings(world, owner)
        names = {name for name, _ in expected}
        mine = [owed for who, owed in seen.values() if owed.scope is scope and owner in (FLEET, who)]
        assert {owed.name for owed in mine if owed.attempt is not None} - {"mine"} <= names
        there = Counter((owed.name, owed.attempt) for owed in mine if owed.attempt is not None and owed.name in names)
        assert there <= expected
        # What an improvement in the same batch overtook was never seen to be owed.
        unseen = Counter(name for who, name, id in gone if id not in seen and (who == owner or name == "stuck"))
        skipped = Counter(line.text for line in cut if owner in (FLEET, line.agent))
        for name in names:
            visible = sum(count for (heartbeat, _), count in there.items() if heartbeat == name)
            assert visible + skipped[name] + (unseen[name] if name in ("redirect", "stuck") else 0) == sum(
                count for (heartbeat, _), count in expected.items() if heartbeat == name
            )


def assert_received_once(world: World) -> None:
    """Assert that each message was received once, was withdrawn once, or is still pending."""
    ends = Counter(received(world)) + Counter(id for *_, id in withdrawn(world))
    assert set(ends.values()) <= {1}
    left = owed_by_id(world.fleet)
    for id, (_, owed) in created(world).items():
        if ends[id]:
            assert id not in left
            continue
        agent, _ = left[id]
        late = owed.attempt is None and owed.since > world.clock - 1500
        assert agent == "" or world.fleet.agents[agent].phase is Phase.RETIRED or late, f"{agent} never got {owed}"


def assert_repeated_only_unheard(world: World) -> None:
    """Assert that each launch was given all pending messages, and of those that an earlier launch was given only the
    ones of a launch without output."""
    heard = {
        (event.agent, event.launch)
        for turn in world.log
        for event in turn.events
        if isinstance(event, on.OutputSeen) and turn.before.agents[event.agent].phase is not Phase.RETIRED
    }
    handed: dict[str, do.Spawn] = {}
    for turn, spawn in performed(world, do.Spawn):
        assert spawn.messages == turn.after.agents[spawn.agent].pending_messages
        for message in spawn.messages:
            if message.id in handed:
                before = handed[message.id]
                assert (before.agent, before.launch) not in heard
            handed[message.id] = spawn
