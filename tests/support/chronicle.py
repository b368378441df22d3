"""What the log of a simulated world says, read without the code that decided it."""

import re
from collections import Counter
from collections.abc import Iterator

from world import Turn, World

from attempts.record import Attempt, Kind, Verdict
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.state import FLEET, Fleet, Owed
from heartbeats.heartbeat import Scope
from heartbeats.trigger import Elapsed, Every


def owed_by_id(fleet: Fleet) -> dict[str, tuple[str, Owed]]:
    """Everything owed, with the agent that owes it; nobody is the empty name."""
    held = {each.id: ("", each) for each in fleet.run.orphans}
    return held | {each.id: (agent.name, each) for agent in fleet.agents.values() for each in agent.owed}


def notes(world: World, type: str) -> Iterator[tuple[Turn, do.Note]]:
    for turn in world.log:
        yield from ((turn, each) for each in turn.actions if isinstance(each, do.Note) and each.type == type)


def withdrawn(world: World) -> list[tuple[str, str, str]]:
    """Agent, name and id of each heartbeat that was withdrawn."""
    found = [
        (note.agent, re.match(r"(\S+) \((h\d+)\) is overtaken", note.text)) for _, note in notes(world, "withdrawn")
    ]
    return [(agent, match[1], match[2]) for agent, match in found if match]


def received(world: World) -> list[str]:
    """The ids of what was received."""
    texts = [note.text for _, note in notes(world, "heartbeat")]
    return [id for text in texts for id in re.findall(r"h\d+", text[text.rindex("(") :])]


def created(world: World) -> dict[str, tuple[str, Owed]]:
    """Everything that was owed at the end of any turn, with who owed it first."""
    seen: dict[str, tuple[str, Owed]] = {}
    for turn in world.log:
        seen = owed_by_id(turn.after) | seen
    return seen


def published(world: World) -> list[Attempt]:
    return sorted(world.records.values(), key=lambda each: each.order)


def counts(attempt: Attempt) -> bool:
    return attempt.kind is Kind.REAL and attempt.verdict is not Verdict.VOID


def resumes(turn: Turn) -> bool:
    return any(isinstance(each, on.Resumed | on.Opened) for each in turn.events)


def spawns(world: World) -> Iterator[tuple[Turn, do.Spawn]]:
    for turn in world.log:
        yield from ((turn, each) for each in turn.actions if isinstance(each, do.Spawn))


def crossings(world: World, owner: str) -> Counter[tuple[str, int]]:
    """By counting on one's fingers: which heartbeats were crossed at which attempts."""
    rules, mine = world.rules, Counter[tuple[str, int]]()
    evals = stagnant = 0
    best = 1.0  # the seed's
    for attempt in published(world)[1:]:
        if owner != FLEET and attempt.agent != owner:
            continue
        score, better = attempt.score, rules.direction.better
        if counts(attempt):
            improved = score is not None and better(score, best) and abs(score - best) > rules.noise
            evals, stagnant = evals + 1, 0 if improved and attempt.verdict is not Verdict.TIED else stagnant + 1
            for each in rules.defaults(Scope.FLEET if owner == FLEET else Scope.OWN):
                if not isinstance(each.trigger, Elapsed):
                    count = evals if isinstance(each.trigger, Every) else stagnant
                    mine[each.name, attempt.number] += count > 0 and count % each.trigger.n == 0
        if score is not None and attempt.verdict is not Verdict.VOID and attempt.kind is not Kind.TUNE:
            best = score if better(score, best) else best
    return +mine
