"""Handles the requests of the operator and of agents: each is checked, carried out and answered once.

An agent may change its own heartbeats, start and stop its own jobs, and retime the fleet's heartbeats.
"""

from collections.abc import Mapping

from attempts.fields import one_line
from coral.errors import CoralError
from coral.fleet import actions as do, events as on, jobs, questions
from coral.fleet.agent_state import Phase
from coral.fleet.agents import live_budgets, membership, orders
from coral.fleet.attempts import grading
from coral.fleet.messages import MESSAGE, acknowledge, put_in_force
from coral.fleet.policy import REQUEST_WINDOW
from coral.fleet.reasons import RunEnd
from coral.fleet.run_state import FLEET
from coral.fleet.transaction import Transaction
from heartbeats.entry import from_entry, is_switched_off
from heartbeats.heartbeat import (
    Heartbeat,
    HeartbeatError,
    Scope,
    find,
    remove_heartbeat,
    reset_heartbeats,
    set_heartbeat,
)

OPERATOR = "operator"
EVERYBODY = "*"
_OWNERS = {EVERYBODY: "everybody", FLEET: "the fleet"}
SHOWN = 80  # characters of a message in the timeline


def on_requested(transaction: Transaction, event: on.Requested) -> None:
    if any(
        isinstance(action, do.Answer) and (action.sender, action.id) == (event.sender, event.id)
        for action in transaction.actions
    ):
        return
    key = f"{event.sender}/{event.id}"
    if key in transaction.run.requests:
        # The request is still there although it was carried out: a crash lost its answer.
        transaction.act(do.Answer(sender=event.sender, id=event.id, ok=True, message="this was done before"))
        return
    try:
        _check_allowed(transaction, event)
        message, ok, hint = _carry_out(transaction, event.sender, event.request), True, ""
        transaction.set_run(requests=(*transaction.run.requests, key)[-REQUEST_WINDOW:])
    except (CoralError, HeartbeatError) as error:
        message, ok, hint = str(error), False, error.hint
    transaction.act(do.Answer(sender=event.sender, id=event.id, ok=ok, message=message, hint=hint))
    if event.sender == OPERATOR and (what := _log_text(event.request, ok)):
        transaction.log("asked" if ok else "refused", f"{what}: {message}")


def _log_text(request: on.Request, ok: bool) -> str:
    """Return the name of an operator's request in the timeline, where the operator reads the answer if nobody
    supervised when the request was made. Empty for requests whose effects have log lines of their own."""
    match request:
        case on.Tell(to=to, text=text):
            return f'tell {"everybody" if to == EVERYBODY else to} "{one_line(text, SHOWN)}"'
        case on.SetHeartbeat(owner=owner) | on.RemoveHeartbeat(owner=owner) | on.ResetHeartbeats(owner=owner):
            return f"heartbeats of {_OWNERS.get(owner, owner)}"
        case on.RunJob() | on.StopJob() if not ok:
            return "job"
        case on.Pause(agent=agent) | on.Unpause(agent=agent) | on.Restart(agent=agent) | on.Retire(agent=agent):
            return agent
        case on.AddAgent():
            return "add an agent"
        case on.MoveAgent(agent=agent):
            return f"move {agent}"
        case on.AnswerQuestion(number=number):
            return f"question {number}"
        case on.HoldGrading() | on.ReleaseGrading() | on.CancelGrade():
            return "grading"
        case on.SetBudget():
            return "budget"
        case on.Stop(after_grades=True):
            return "stop after the grades"
    return ""


def _check_allowed(transaction: Transaction, event: on.Requested) -> None:
    if event.sender == OPERATOR:
        if isinstance(event.request, on.Acknowledge):
            raise CoralError("cannot acknowledge a heartbeat for an agent", "an agent does so when it has read it")
        if isinstance(event.request, on.Ask):
            raise CoralError("cannot ask yourself", "`coral tell` sends the agents a message")
        return
    if event.sender not in transaction.agents:
        raise CoralError(f"cannot answer {event.sender}: there is no such agent", "")
    if isinstance(event.request, on.Stop | on.Leave | on.Tell | on.Steering):
        raise CoralError("cannot do this for an agent", "only the operator can")
    match event.request:
        case on.SetHeartbeat(owner=owner) | on.RemoveHeartbeat(owner=owner) | on.ResetHeartbeats(owner=owner):
            retimes = isinstance(event.request, on.SetHeartbeat) and owner == FLEET
            if owner != event.sender and not retimes:
                raise CoralError("cannot change the heartbeats of somebody else", "leave out the owner")
        case on.RunJob(agent=agent) if agent != event.sender:
            raise CoralError("cannot start a job of somebody else", "leave out the agent")


def _carry_out(transaction: Transaction, sender: str, request: on.Request) -> str:
    match request:
        case on.SetHeartbeat(owner=owner, entry=entry):
            scope = Scope.FLEET if entry.get("scope") == Scope.FLEET.value else Scope.OWN
            return _change(transaction, sender, _owners(transaction, owner, str(entry.get("name")), scope), entry)
        case on.RemoveHeartbeat(owner=owner, name=name):
            return _remove(transaction, sender, _owners(transaction, owner, name, Scope.OWN), name)
        case on.ResetHeartbeats(owner=owner):
            return _reset(transaction, sender, _owners(transaction, owner, "", Scope.OWN))
        case on.Tell(to=to, text=text):
            return _tell(transaction, to, text)
        case on.Stop(end=end):
            return _drain(transaction, end) if request.after_grades else _stop(transaction, end)
        case on.Leave(end=end):
            return _leave(transaction, end)
        case on.Acknowledge(messages=ids, jobs=numbers):
            # Only printed messages: otherwise an agent could avoid an interrupt by acknowledging its message unread.
            printed = {message.id for message in transaction.agents[sender].pending_messages if message.printed}
            acknowledge(transaction, sender, tuple(id for id in ids if id in printed))
            jobs.mark_delivered(transaction, sender, numbers)
            return "acknowledged"
        case on.RaiseAlert(text=text):
            transaction.alert(text, "" if sender == OPERATOR else sender)
            return "the operator gets this alert"
        case on.Ask(text=text):
            return questions.ask(transaction, sender, text)
        case on.RunJob():
            return jobs.start(transaction, request)
        case on.StopJob(number=number):
            return jobs.stop(transaction, sender, number)
        case _:
            return _steer(transaction, request)


def _steer(transaction: Transaction, request: on.Steering) -> str:  # noqa: C901 - one arm per request
    match request:
        case on.Pause(agent=agent):
            return orders.pause(transaction, agent)
        case on.Unpause(agent=agent):
            return orders.unpause(transaction, agent)
        case on.Restart(agent=agent, fresh=fresh):
            return orders.restart(transaction, agent, fresh=fresh)
        case on.Retire(agent=agent):
            return orders.dismiss(transaction, agent)
        case on.AddAgent():
            return membership.add(transaction, request)
        case on.MoveAgent():
            return membership.move(transaction, request)
        case on.HoldGrading():
            return grading.hold(transaction)
        case on.ReleaseGrading():
            return grading.release(transaction)
        case on.CancelGrade(number=number):
            return grading.cancel(transaction, number)
        case on.AnswerQuestion(number=number, text=text):
            return questions.answer(transaction, number, text)
        case on.SetBudget():
            return live_budgets.set_budget(transaction, request)
        case on.AcknowledgeAlerts(through=through):
            return _acknowledge_alerts(transaction, through)


def _acknowledge_alerts(transaction: Transaction, through: int | None) -> str:
    """Acknowledge all alerts up to number `through`. Alerts that come later, and those that were acknowledged before,
    stay as they are."""
    run = transaction.run
    count, before = run.alert_count, run.alerts_acknowledged
    last = count if through is None else through
    if not 1 <= last <= count:
        hint = f"the last one is {count}" if count else "there is none yet"
        raise CoralError(f"cannot acknowledge alert {last}: there is no such alert", hint)
    still = tuple(number for number in run.alerts_settled if number > last)
    transaction.set_run(alerts_acknowledged=max(before, last), alerts_settled=still)
    new = max(last - before, 0) - (len(run.alerts_settled) - len(still))
    return f"{new} {'alert is' if new == 1 else 'alerts are'} acknowledged"


def _stop(transaction: Transaction, end: RunEnd) -> str:
    if not transaction.run.stopping:
        transaction.set_run(stopping=end, detached_reason=None)
    else:
        transaction.set_run(is_hurried=True)
    return "stopping"


def _drain(transaction: Transaction, end: RunEnd) -> str:
    if transaction.run.is_ending:
        raise CoralError("cannot stop after the grades: the run is stopping", "`coral stop` ends it at once")
    if transaction.run.is_grading_held:
        raise CoralError("cannot stop after the grades: grading is held", "coral grading release")
    transaction.set_run(draining=end)
    return "the agents end; the run stops when what they submitted is graded"


def _leave(transaction: Transaction, end: RunEnd) -> str:
    if transaction.run.is_ending:
        raise CoralError(
            "cannot leave the agents at work: the run is stopping", "wait for its end, then `coral resume`"
        )
    transaction.set_run(detached_reason=end)
    transaction.log("left", "agents and grades continue without a supervisor")
    return "agents and grades continue without a supervisor"


def _owners(transaction: Transaction, owner: str, name: str, scope: Scope) -> list[str]:
    """Return the owners that a request names. `*` means the fleet for a heartbeat of the fleet, else every agent."""
    if owner == EVERYBODY:
        of_fleet = scope is Scope.FLEET or find(transaction.heartbeats[FLEET], name) is not None
        return [FLEET] if of_fleet else [FLEET, *transaction.agents] if not name else list(transaction.agents)
    if owner not in transaction.heartbeats:
        known = ", ".join(transaction.agents)
        raise CoralError(f"cannot find the owner {owner!r}", f"there are: {known}, and {FLEET}")
    return [owner]


def _change(transaction: Transaction, sender: str, owners: list[str], entry: Mapping[str, object]) -> str:
    if is_switched_off(entry):
        return _remove(transaction, sender, owners, str(entry.get("name")))
    # All owners or none: the first refusal leaves every owner as it was.
    changed = {}
    for owner in owners:
        current = transaction.heartbeats[owner]
        wanted = _wanted(entry, owner, current)
        changed[owner] = set_heartbeat(current, wanted, sender)
    for owner, heartbeats in changed.items():
        put_in_force(transaction, owner, heartbeats, sender)
    return f"{wanted.name}: {wanted.when}"


def _wanted(entry: Mapping[str, object], owner: str, current: tuple[Heartbeat, ...]) -> Heartbeat:
    """Return the heartbeat that an entry describes. Its scope must be the owner's: an agent's own heartbeat among those
    of the fleet would reach everybody under rules that were made for one agent."""
    scope = Scope.FLEET if owner == FLEET else Scope.OWN
    wanted = from_entry({**entry, "scope": scope.value} if entry.get("scope") is None else entry, current)
    if wanted.scope is not scope:
        raise CoralError(f"cannot set {wanted.name} for {owner}: its scope is {wanted.scope}", "leave out the scope")
    return wanted


def _remove(transaction: Transaction, sender: str, owners: list[str], name: str) -> str:
    having = [owner for owner in owners if find(transaction.heartbeats[owner], name)] or owners
    changed = {owner: remove_heartbeat(transaction.heartbeats[owner], name, sender) for owner in having}
    for owner, heartbeats in changed.items():
        put_in_force(transaction, owner, heartbeats)
    return f"{name} is removed"


def _reset(transaction: Transaction, sender: str, owners: list[str]) -> str:
    for owner in owners:
        defaults = transaction.rules.defaults(Scope.FLEET if owner == FLEET else Scope.OWN)
        put_in_force(transaction, owner, reset_heartbeats(defaults, transaction.heartbeats[owner]), sender)
    return "heartbeats are as the run started with"


def _tell(transaction: Transaction, to: str, text: str) -> str:
    names = list(transaction.agents) if to == EVERYBODY else [to]
    if not text.strip():
        raise CoralError("cannot send an empty message", "say something")
    if any(name not in transaction.agents for name in names):
        raise CoralError(f"cannot tell {to!r}: there is no such agent", f"there are: {', '.join(transaction.agents)}")
    there = [name for name in names if transaction.agents[name].phase is not Phase.RETIRED]
    if not there:
        raise CoralError(f"cannot tell {to!r}: it has retired", "coral status shows who is at work")
    due = transaction.clock + transaction.rules.max_defer  # like a clock heartbeat, it waits for a good moment
    for name in there:
        transaction.queue_notice(name, MESSAGE, due, prompt=text)
    return "queued: it is delivered when a turn or an eval ends"
