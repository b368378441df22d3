"""What agents and the operator ask for. Each request is answered once; an agent decides about its own heartbeats."""

from collections.abc import Mapping

from attempts.fields import one_line
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet import jobs, tidings
from coral.fleet.draft import Draft
from coral.fleet.interventions import MESSAGE, UNASKED, acknowledge, owe_message
from coral.fleet.policy import REQUEST_WINDOW
from coral.fleet.state import FLEET, Agent, Phase
from heartbeats.entry import from_entry
from heartbeats.heartbeat import (
    Heartbeat,
    Refused,
    Scope,
    find,
    remove_heartbeat,
    reset_heartbeats,
    set_heartbeat,
)
from heartbeats.trigger import arm, retime

OPERATOR = "operator"
EVERYBODY = "*"
_OWNERS = {EVERYBODY: "everybody", FLEET: "the fleet"}
SHOWN = 80  # characters of a message in the timeline


def on_requested(draft: Draft, event: on.Requested) -> None:
    if any(
        isinstance(each, do.Answer) and (each.sender, each.id) == (event.sender, event.id) for each in draft.actions
    ):
        return
    key = f"{event.sender}/{event.id}"
    if key in draft.run.requests:
        # It is still there, so its answer was lost with the supervisor before.
        draft.act(do.Answer(sender=event.sender, id=event.id, ok=True, message="this was done before"))
        return
    try:
        _check_allowed(draft, event)
        message, ok, hint = _carry_out(draft, event.sender, event.request), True, ""
        draft.set_run(requests=(*draft.run.requests, key)[-REQUEST_WINDOW:])
    except Refused as refused:
        message, ok, hint = str(refused), False, refused.hint
    draft.act(do.Answer(sender=event.sender, id=event.id, ok=ok, message=message, hint=hint))
    if event.sender == OPERATOR and (what := _told_as(event.request, ok)):
        draft.note("asked" if ok else "refused", f"{what}: {message}")


def _told_as(request: on.Request, ok: bool) -> str:
    """How the timeline names a request of the operator's, who may have asked while nobody supervised and reads there
    what came of it; empty for those of which it tells more by itself."""
    match request:
        case on.Tell(to=to, text=text):
            return f'tell {"everybody" if to == EVERYBODY else to} "{one_line(text, SHOWN)}"'
        case on.SetHeartbeat(owner=owner) | on.RemoveHeartbeat(owner=owner) | on.ResetHeartbeats(owner=owner):
            return f"heartbeats of {_OWNERS.get(owner, owner)}"
        case on.StartJob() | on.StopJob() if not ok:
            return "job"
    return ""


def _check_allowed(draft: Draft, event: on.Requested) -> None:
    if event.sender == OPERATOR:
        if isinstance(event.request, on.Acknowledge):
            raise Refused("cannot acknowledge a heartbeat for an agent", "an agent does so when it has read it")
        return
    if event.sender not in draft.agents:
        raise Refused(f"cannot answer {event.sender}: there is no such agent", "")
    match event.request:
        case on.Stop() | on.Leave() | on.Tell():
            raise Refused("cannot do this for an agent", "only the operator can")
        case on.SetHeartbeat(owner=owner) | on.RemoveHeartbeat(owner=owner) | on.ResetHeartbeats(owner=owner):
            retimes = isinstance(event.request, on.SetHeartbeat) and owner == FLEET
            if owner != event.sender and not retimes:
                raise Refused("cannot change the heartbeats of somebody else", "leave out the owner")
        case on.StartJob(agent=agent) if agent != event.sender:
            raise Refused("cannot start a job of somebody else", "leave out the agent")


def _carry_out(draft: Draft, sender: str, request: on.Request) -> str:
    match request:
        case on.SetHeartbeat(owner=owner, entry=entry):
            scope = Scope.FLEET if entry.get("scope") == Scope.FLEET.value else Scope.OWN
            return _change(draft, sender, _owners(draft, owner, str(entry.get("name")), scope), entry)
        case on.RemoveHeartbeat(owner=owner, name=name):
            return _remove(draft, sender, _owners(draft, owner, name, Scope.OWN), name)
        case on.ResetHeartbeats(owner=owner):
            return _reset(draft, _owners(draft, owner, "", Scope.OWN))
        case on.Tell(to=to, text=text):
            return _tell(draft, to, text)
        case on.Stop(reason=reason):
            if not draft.run.stopping:
                draft.set_run(stopping=reason or "stopped by the operator", left="")
            return "stopping"
        case on.Leave(reason=reason):
            return _leave(draft, reason)
        case on.Acknowledge(owed=ids, jobs=numbers):
            # Only what was printed: an agent could wave away by its id what is about to interrupt it.
            printed = {each.id for each in draft.agents[sender].owed if each.printed}
            acknowledge(draft, sender, tuple(each for each in ids if each in printed))
            tidings.seen(draft, sender, numbers)
            return "acknowledged"
        case on.Alert(text=text):
            draft.alert(text, "" if sender == OPERATOR else sender)
            return "the operator is told"
        case on.StartJob():
            return jobs.start(draft, request)
        case on.StopJob(number=number):
            return jobs.stop(draft, sender, number)


def _leave(draft: Draft, reason: str) -> str:
    if draft.run.stopping:
        raise Refused("cannot leave the agents at work: the run is stopping", "`coral resume` goes on when it has")
    draft.set_run(left=reason or "left by the operator")
    draft.note("left", "agents and grades go on without a supervisor")
    return "agents and grades go on without a supervisor"


def _owners(draft: Draft, owner: str, name: str, scope: Scope) -> list[str]:
    """Whose heartbeats are meant. For everybody: the fleet's where it is one of the fleet's, else every agent's."""
    if owner == EVERYBODY:
        of_fleet = scope is Scope.FLEET or find(draft.heartbeats[FLEET], name) is not None
        return [FLEET] if of_fleet else [FLEET, *draft.agents] if not name else list(draft.agents)
    if owner not in draft.heartbeats:
        known = ", ".join(draft.agents)
        raise Refused(f"cannot find the owner {owner!r}", f"there are: {known}, and {FLEET}")
    return [owner]


def _change(draft: Draft, sender: str, owners: list[str], entry: Mapping[str, object]) -> str:
    # All or none: the first refusal leaves everything as it was.
    changed = {}
    for owner in owners:
        current = draft.heartbeats[owner]
        wanted = _wanted(entry, owner, current)
        changed[owner] = set_heartbeat(current, wanted, sender)
    for owner, heartbeats in changed.items():
        put_in_force(draft, owner, heartbeats)
    return f"{wanted.name}: {wanted.when}"


def _wanted(entry: Mapping[str, object], owner: str, current: tuple[Heartbeat, ...]) -> Heartbeat:
    """What an owner's entry asks for. Among the fleet's heartbeats one with another scope would reach everybody
    under rules that were made for one."""
    scope = Scope.FLEET if owner == FLEET else Scope.OWN
    wanted = from_entry({**entry, "scope": scope.value} if entry.get("scope") is None else entry, current)
    if wanted.scope is not scope:
        raise Refused(f"cannot set {wanted.name} for {owner}: its scope is {wanted.scope}", "leave out the scope")
    if wanted.name in UNASKED:
        sends = "the operator sends" if wanted.name == MESSAGE else "Coral sends itself"
        raise Refused(f"cannot name a heartbeat {wanted.name}: that is what {sends}", "choose another name")
    return wanted


def _remove(draft: Draft, sender: str, owners: list[str], name: str) -> str:
    having = [owner for owner in owners if find(draft.heartbeats[owner], name)] or owners
    changed = {owner: remove_heartbeat(draft.heartbeats[owner], name, sender) for owner in having}
    for owner, heartbeats in changed.items():
        put_in_force(draft, owner, heartbeats)
    return f"{name} is removed"


def _reset(draft: Draft, owners: list[str]) -> str:
    for owner in owners:
        defaults = draft.rules.defaults(Scope.FLEET if owner == FLEET else Scope.OWN)
        put_in_force(draft, owner, reset_heartbeats(defaults, draft.heartbeats[owner]))
    return "heartbeats are as the run started with"


def _tell(draft: Draft, to: str, text: str) -> str:
    names = list(draft.agents) if to == EVERYBODY else [to]
    if not text.strip():
        raise Refused("cannot send an empty message", "say something")
    if any(name not in draft.agents for name in names):
        raise Refused(f"cannot tell {to!r}: there is no such agent", f"there are: {', '.join(draft.agents)}")
    there = [name for name in names if draft.agents[name].phase is not Phase.RETIRED]
    if not there:
        raise Refused(f"cannot tell {to!r}: it has retired", "coral status shows who is at work")
    for name in there:
        owe_message(draft, name, text)
    return "it goes along at the next good moment"


def put_in_force(draft: Draft, owner: str, heartbeats: tuple[Heartbeat, ...]) -> None:
    """Replace an owner's heartbeats; the intervals that run get shorter by it, never longer."""
    before = draft.heartbeats.get(owner, ())
    holder = draft.run if owner == FLEET else draft.agents[owner]
    targets = {}
    for heartbeat in heartbeats:
        old = find(before, heartbeat.name)
        if old is None:
            targets[heartbeat.name] = arm(heartbeat.trigger, holder.progress, draft.clock)
        else:
            running = holder.targets[heartbeat.name]
            targets[heartbeat.name] = retime(old.trigger, heartbeat.trigger, running, holder.progress, draft.clock)
    draft.heartbeats[owner] = heartbeats
    if isinstance(holder, Agent):
        draft.set_agent(owner, targets=targets)
    else:
        draft.set_run(targets=targets)
    draft.act(do.ShowHeartbeats(owner=owner))
