"""Which agents are in the fleet, and how each is driven: the operator adds agents to a running fleet, or moves them to
another runtime, model or role.

A worker thread first prepares what the agent needs; until then nothing changes. A move is in force once no launch of
the agent is live; a notice of the move causes an interrupt when that costs no work. The other agents read of a new
agent in their next launch, and are not interrupted for it.
"""

import re
from dataclasses import replace

from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.agent_state import LIVE, Agent, Order, Phase
from coral.fleet.agents import accounts, orders, spending
from coral.fleet.agents.launch_exit import wait
from coral.fleet.members import Former, Member, Move, WantedMember
from coral.fleet.messages import MESSAGE, put_in_force
from coral.fleet.reasons import Reason, ReasonKind
from coral.fleet.rules import in_force
from coral.fleet.run_state import FLEET
from coral.fleet.transaction import Transaction
from heartbeats.heartbeat import Scope

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}[a-z0-9]")
NUMBERED = re.compile(r"agent-([1-9][0-9]{0,8})")
RESERVED_NAMES = (FLEET, "operator", "replies")  # of folders of a run that lie beside those of agents


def add(transaction: Transaction, asked: on.AddAgent) -> str:
    """Add an agent to the fleet once it is prepared. Like all agents it begins with the seed. CoralError where the name
    is bad or the run is stopping."""
    if transaction.run.is_ending:
        raise CoralError("cannot add an agent: the run is stopping", "`coral resume` continues it")
    known = {*transaction.agents, *transaction.run.preparing, *transaction.rules.agents}
    name = asked.name or _next_name(known)
    if name in known:
        raise CoralError(f"cannot add {name}: there is such an agent", f"coral agent restart {name}, or another name")
    if not NAME.fullmatch(name) or name in RESERVED_NAMES:
        hint = "small letters, digits and -, two to 32 of them, a letter first; it names folders of the run"
        raise CoralError(f"cannot add {name!r}: that is no name for an agent", hint)
    _prepare(transaction, name, asked.wanted)
    return f"{name} is being prepared; it begins when its workspace is ready"


def move(transaction: Transaction, asked: on.MoveAgent) -> str:
    name, wanted = asked.agent, asked.wanted
    orders.find(transaction, name, "move")
    if name in transaction.run.preparing:
        raise CoralError(f"cannot move {name}: its last move is being prepared", "try again in a moment")
    if wanted == WantedMember():
        raise CoralError(f"cannot move {name}: nothing is to change", "give a model, a role or a runtime")
    _prepare(transaction, name, wanted)
    return f"{name} is being prepared for the move; it is in force with its next launch"


def on_prepared(transaction: Transaction, event: on.AgentPrepared) -> None:
    if event.agent not in transaction.run.preparing:
        return
    _forget(transaction, event.agent)
    if event.agent not in transaction.agents:
        _join(transaction, event.agent, event.member)
    elif event.was is not None:
        _will_move(transaction, event.agent, Move(member=event.member, was=event.was))


def on_not_prepared(transaction: Transaction, name: str, reason: str) -> None:
    if name in transaction.run.preparing:
        _forget(transaction, name)
        what = "moved" if name in transaction.agents else "added"
        transaction.alert(f"{name} is not {what}: {reason}", name if name in transaction.agents else "")


def prepare_again(transaction: Transaction) -> None:
    """Order every preparation again for a new supervisor, which does not know how far the last one came."""
    for name, wanted in transaction.run.preparing.items():
        _order(transaction, name, wanted)


def restore(transaction: Transaction, name: str, member: Member) -> None:
    """Drive an agent as it was driven before a damaged journal lost that decision, and start it if the operator had
    added it in the lost time."""
    if transaction.run.members.get(name) == member and name in transaction.agents:
        return
    _forget(transaction, name)
    transaction.set_run(moves={other: move for other, move in transaction.run.moves.items() if other != name})
    _set_member(transaction, name, member, None)
    if name not in transaction.agents:
        begin(transaction, name, 0.0)  # mutants: equivalent, it begins at once as well if it was to begin earlier


def begin(transaction: Transaction, name: str, seconds: float) -> None:
    """Put a new agent into the fleet; it starts after this many seconds."""
    transaction.agents[name] = Agent(name=name, deadline=transaction.clock + seconds)
    put_in_force(transaction, name, transaction.rules.defaults(Scope.OWN))


def advance(transaction: Transaction) -> None:
    """Put each move in force whose agent has no live launch any more."""
    for name, moved in list(transaction.run.moves.items()):
        if transaction.agents[name].phase not in LIVE:
            _move_now(transaction, transaction.agents[name], moved)


def _next_name(known: set[str]) -> str:
    numbers = [int(found[1]) for name in known if (found := NUMBERED.fullmatch(name))]
    return f"agent-{max(numbers, default=0) + 1}"


def _prepare(transaction: Transaction, name: str, wanted: WantedMember) -> None:
    transaction.set_run(preparing={**transaction.run.preparing, name: wanted})
    _order(transaction, name, wanted)


def _order(transaction: Transaction, name: str, wanted: WantedMember) -> None:
    # A move that waits is changed by the next one: it would otherwise be lost.
    waiting = transaction.run.moves.get(name)
    base, is_new = (None if waiting is None else waiting.member), name not in transaction.agents
    transaction.act(do.PrepareAgent(agent=name, wanted=wanted, is_new=is_new, base=base))


def _forget(transaction: Transaction, name: str) -> None:
    others = {other: wanted for other, wanted in transaction.run.preparing.items() if other != name}
    transaction.set_run(preparing=others)


def _join(transaction: Transaction, name: str, member: Member) -> None:
    _set_member(transaction, name, replace(member, added=True), None)
    text = f"The operator has added {name} to the fleet: it is driven by {member.title}."
    for other, agent in list(transaction.agents.items()):
        if agent.phase is not Phase.RETIRED:
            transaction.queue_notice(other, MESSAGE, transaction.clock, prompt=text, quiet=True)
    begin(transaction, name, 0.0)  # mutants: equivalent, it begins at once as well if it was to begin earlier
    transaction.log("added", member.title, name)


def _will_move(transaction: Transaction, name: str, asked: Move) -> None:
    if (before := transaction.run.moves.get(name)) is not None:
        transaction.withdraw(name, lambda message: message.id == before.notice, ": the operator has changed the move")
    others = {other: moved for other, moved in transaction.run.moves.items() if other != name}
    member, was = asked.member, asked.was
    transaction.set_run(moves=others)
    if member == was:
        transaction.log("moved", f"not: it is driven by {was.title} already", name)
        return
    driven = "as before" if member.title == was.title else f"now (before: {was.title})"
    text = f"The operator has moved you: you are driven by {member.title} {driven}."
    if member.role != was.role:
        text += (
            f" Your role is now: {member.role}" if member.role.strip() else " You have no role of your own any more."
        )
    notice = transaction.queue_notice(name, MESSAGE, transaction.clock + transaction.rules.max_defer, prompt=text)
    transaction.set_run(moves={**others, name: replace(asked, notice=notice)})


def _move_now(transaction: Transaction, agent: Agent, moved: Move) -> None:
    name, member, before = agent.name, moved.member, transaction.run.members.get(agent.name)
    transaction.set_run(moves={other: move for other, move in transaction.run.moves.items() if other != name})
    if member.account != moved.was.account:
        accounts.leave(transaction, agent)
        if agent.phase is Phase.PARKED and agent.reason.kind is ReasonKind.AT_LIMIT and agent.order is Order.WORK:
            wait(transaction, agent, Reason(ReasonKind.MOVED))
    is_use_lost = spending.reports_nothing(agent, before, transaction.rules.accounts.get(name, ""))
    meter = replace(agent.meter.closed(), is_use_lost=agent.meter.is_use_lost or is_use_lost)
    transaction.set_agent(name, meter=meter)
    changes_program = member.runtime != moved.was.runtime
    if changes_program:
        transaction.set_agent(name, begins_session=True)
    aside = agent.launch if changes_program else None
    former, is_added = ((), False) if before is None else (before.former, before.added)
    if changes_program and agent.launch:
        former = (*former, Former(through=agent.launch, runtime=moved.was.runtime))
    _set_member(transaction, name, replace(member, added=is_added, former=former), aside)
    changes = f"{moved.was.title} -> " if member.title != moved.was.title else "with another role or other options: "
    transaction.log("moved", f"{changes}{member.title}", name)


def _set_member(transaction: Transaction, name: str, member: Member, aside: int | None) -> None:
    transaction.set_run(members={**transaction.run.members, name: member})
    transaction.rules = in_force(transaction.task_rules, transaction.run)
    transaction.act(do.SetMember(agent=name, member=member, aside=aside))
