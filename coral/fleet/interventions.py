"""What is owed to whom: crossings of triggers, messages, and the acknowledgement that lets go of them.

A crossing is owed once, at the attempt that crossed; what is owed goes along with every launch until the first
output of one of them acknowledges it.
"""

from collections.abc import Mapping
from dataclasses import replace

from attempts.progress import Progress
from coral.fleet.draft import Draft
from coral.fleet.policy import INLINE_SECONDS, MOST_OWED, MOST_UNANSWERED
from coral.fleet.state import FLEET, Agent, Owed, Phase
from heartbeats.heartbeat import Delivery, Heartbeat, Scope
from heartbeats.reply import Alert as SaidAlert
from heartbeats.reply import Ok, parse_reply
from heartbeats.trigger import Elapsed, Stagnant, step

MESSAGE = "message"
LAND = "land"
BEGIN = "begin"
STALLED = "stalled"
ENDED = "job ended"  # not a name that a heartbeat may have
UNASKED = (MESSAGE, LAND, BEGIN, STALLED, ENDED)  # they ask for no answer
UNDELIVERED = "the one before has not been delivered yet"
UNANSWERED = "the one before has not been answered yet"


def cross_after_attempt(draft: Draft, author: str, number: int) -> None:
    """Look at every trigger that counts attempts, now that one more was counted. What the fleet has crossed falls to
    the author, so that nobody else is disturbed by it; if the author has retired, to the next who submits."""
    agent = draft.agents[author]
    targets, fired = _step_all(draft, author, agent.targets, agent.progress)
    draft.set_agent(author, targets=targets)
    for heartbeat in fired:
        draft.owe(author, _crossing(draft, heartbeat, number))
    targets, fired = _step_all(draft, FLEET, draft.run.targets, draft.run.progress)
    orphans = (*draft.run.orphans, *(_crossing(draft, heartbeat, number) for heartbeat in fired))
    if draft.agents[author].phase is Phase.RETIRED:
        draft.set_run(targets=targets, orphans=orphans)
        return
    draft.set_run(targets=targets, orphans=())
    for owed in orphans:
        draft.owe(author, owed)


def withdraw_overtaken(draft: Draft, author: str, improved: bool, best_improved: bool) -> None:
    """A stagnation that an improvement has overtaken says nothing any more, unless it is on its way already."""
    if best_improved:
        for owed in (each for each in draft.run.orphans if each.stagnant):
            draft.note("withdrawn", f"{owed.name} ({owed.id}) is overtaken by an improvement")
        draft.set_run(orphans=tuple(each for each in draft.run.orphans if not each.stagnant))
    for name, agent in list(draft.agents.items()):
        stays = []
        for owed in agent.owed:
            overtaken = best_improved if owed.scope is Scope.FLEET else improved and name == author
            if owed.stagnant and overtaken and owed.id not in agent.carried:
                draft.note("withdrawn", f"{owed.name} ({owed.id}) is overtaken by an improvement", name)
            else:
                stays.append(owed)
        if len(stays) != len(agent.owed):
            draft.set_agent(name, owed=tuple(stays))


def place_at_eval(draft: Draft, author: str, waiting: bool) -> tuple[tuple[str, ...], tuple[Owed, ...]]:
    """An attempt of this agent is published: the end of its `coral eval` is a good place for all that is owed.

    Returns the names of the heartbeats that interrupt, and those that `coral eval` prints instead.
    """
    agent = draft.agents[author]
    if not waiting or agent.phase is not Phase.RUNNING:
        return (), ()
    draft.set_agent(author, deadline=draft.clock + draft.rules.stall)
    fresh = tuple(each for each in agent.owed if each.id not in agent.carried and not _is_read_now(each, draft.clock))
    if fresh and all(each.inline for each in fresh):
        # Printed once; should nobody acknowledge it in time, it becomes an interrupt like any other.
        due = draft.clock + INLINE_SECONDS
        printed = {each.id: replace(each, due=due, inline=False, printed=True) for each in fresh}
        draft.set_agent(author, owed=tuple(printed.get(each.id, each) for each in agent.owed))
        return (), fresh
    due_now = {each.id: replace(each, due=draft.clock, defers=False) for each in fresh}
    draft.set_agent(author, owed=tuple(due_now.get(each.id, each) for each in agent.owed))
    return tuple(dict.fromkeys(each.name for each in fresh)), ()


def beat_by_clock(draft: Draft) -> None:
    """Heartbeats that the clock sets off. One that is still unanswered, or an agent that is already owed a lot, is
    a stated reason to leave this period out."""
    for name, agent in draft.agents.items():
        if agent.phase is not Phase.RETIRED:
            for heartbeat in _set_off(draft, name):
                if reason := _reason_to_skip(draft.agents[name], heartbeat):
                    draft.note("skipped", f"{heartbeat.name}: {reason}", name)
                    if reason == UNANSWERED:
                        leave_unanswered(draft, name)
                else:
                    draft.owe(name, _crossing(draft, heartbeat, None))
    # Of the fleet's clock nobody is the author: it falls to the next who submits.
    for heartbeat in _set_off(draft, FLEET):
        if _waits_for_delivery(draft, heartbeat):
            draft.note("skipped", f"{heartbeat.name}: {UNDELIVERED}")
        else:
            draft.set_run(orphans=(*draft.run.orphans, _crossing(draft, heartbeat, None)))


def owe_message(draft: Draft, name: str, text: str) -> None:
    """A word of the operator's: it waits for a good moment like a heartbeat of the clock."""
    due = draft.clock + draft.rules.max_defer
    id = draft.next_owed_id()
    draft.owe(name, Owed(id=id, name=MESSAGE, since=draft.clock, due=due, prompt=text, defers=True))


def acknowledge(draft: Draft, name: str, ids: tuple[str, ...]) -> None:
    """The agent has received these."""
    agent = draft.agents[name]
    got = [each for each in agent.owed if each.id in ids]
    if not got:
        return
    names = tuple(dict.fromkeys(each.name for each in got))
    # What the clock set off, and nobody said, asks for an answer.
    asks = tuple(each.name for each in got if each.attempt is None and each.name not in UNASKED)
    draft.set_agent(
        name,
        owed=tuple(each for each in agent.owed if each.id not in ids),
        carried=tuple(each for each in agent.carried if each not in ids),
        asked=tuple(dict.fromkeys(agent.asked + asks)),
    )
    draft.note("heartbeat", f"{', '.join(names)} ({', '.join(each.id for each in got)}) received", name)


def hear_reply(draft: Draft, name: str, text: str) -> None:
    """An answer to a checkpoint: `HEARTBEAT_OK` is kept silent, `ALERT: ...` goes to the operator."""
    if not draft.agents[name].asked:
        return
    match parse_reply(text):
        case Ok():
            draft.set_agent(name, asked=(), unanswered=0)
        case SaidAlert(said):
            draft.set_agent(name, asked=(), unanswered=0)
            draft.alert(said, name)


def leave_unanswered(draft: Draft, name: str) -> None:
    """One alert for a row of them: who answers no more may have stopped to make sense of what it is told."""
    agent = draft.set_agent(name, unanswered=draft.agents[name].unanswered + 1)
    if agent.unanswered == MOST_UNANSWERED:
        draft.alert(f"{name} has left {MOST_UNANSWERED} checkpoints in a row unanswered", name)


def _step_all(
    draft: Draft, owner: str, targets: Mapping[str, float], progress: Progress
) -> tuple[dict[str, float], list[Heartbeat]]:
    moved, fired = dict(targets), []
    for heartbeat in draft.heartbeats.get(owner, ()):
        if isinstance(heartbeat.trigger, Elapsed):
            continue
        now = step(heartbeat.trigger, moved[heartbeat.name], progress, draft.clock)
        moved[heartbeat.name] = now.target
        if now.fired:
            fired.append(heartbeat)
    return moved, fired


def _crossing(draft: Draft, heartbeat: Heartbeat, number: int | None) -> Owed:
    by_clock = isinstance(heartbeat.trigger, Elapsed)
    return Owed(
        id=draft.next_owed_id(),
        name=heartbeat.name,
        since=draft.clock,
        due=draft.clock + (draft.rules.max_defer if by_clock else 0.0),
        prompt=heartbeat.prompt,
        attempt=number,
        scope=heartbeat.scope,
        stagnant=isinstance(heartbeat.trigger, Stagnant),
        defers=by_clock,
        inline=heartbeat.delivery is Delivery.INLINE,
    )


def _set_off(draft: Draft, owner: str) -> list[Heartbeat]:
    """The heartbeats of an owner that the clock has come to; their next period begins."""
    holder = draft.run if owner == FLEET else draft.agents[owner]
    targets, fired = holder.targets, []
    for heartbeat in draft.heartbeats.get(owner, ()):
        # Asked here first: at nearly every look none is due, and a fleet has many.
        if isinstance(heartbeat.trigger, Elapsed) and draft.clock >= targets[heartbeat.name]:
            now = step(heartbeat.trigger, targets[heartbeat.name], holder.progress, draft.clock)
            targets = {**targets, heartbeat.name: now.target}
            fired.append(heartbeat)
    if fired and owner == FLEET:
        draft.set_run(targets=targets)
    elif fired:
        draft.set_agent(owner, targets=targets)
    return fired


def _reason_to_skip(agent: Agent, heartbeat: Heartbeat) -> str:
    if any(each.name == heartbeat.name and each.scope is heartbeat.scope for each in agent.owed):
        return UNDELIVERED
    if heartbeat.name in agent.asked:
        return UNANSWERED
    if len(agent.owed) >= MOST_OWED:
        return f"{len(agent.owed)} other heartbeats are still owed"
    return ""


def _waits_for_delivery(draft: Draft, heartbeat: Heartbeat) -> bool:
    owed = (*draft.run.orphans, *(each for agent in draft.agents.values() for each in agent.owed))
    return any(each.name == heartbeat.name and each.scope is Scope.FLEET for each in owed)


def _is_read_now(owed: Owed, now: float) -> bool:
    """Whether `coral eval` has printed it, and there is time yet to acknowledge it."""
    return owed.printed and now < owed.due
