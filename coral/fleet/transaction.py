"""A decision in progress: the changed records of the fleet, and the actions that it has ordered so far."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from attempts.standing import Measured, Standing
from coral.fleet.actions import Action, LogEvent, LoggedMessage, Notify
from coral.fleet.agent_state import Agent, PendingMessage
from coral.fleet.events import Moment
from coral.fleet.reasons import Reason
from coral.fleet.rules import Rules, in_force
from coral.fleet.run_state import FLEET, Alert, Fleet, HoldoutScore, Job, PendingAttempt, Run
from heartbeats.heartbeat import Heartbeat


class Transaction:
    """Collects changes to a fleet's frozen records. Records that no handler changes are shared with the old fleet, so
    that a decision without changes is cheap."""

    def __init__(self, fleet: Fleet, now: Moment, rules: Rules) -> None:
        self.run: Run = fleet.run
        self.agents: dict[str, Agent] = dict(fleet.agents)
        self.pending: dict[int, PendingAttempt] = dict(fleet.pending)
        self.heartbeats: dict[str, tuple[Heartbeat, ...]] = dict(fleet.heartbeats)
        self.jobs: dict[int, Job] = dict(fleet.jobs)
        self.measured: Mapping[int, Measured] = fleet.measured
        self.holdouts: dict[int, HoldoutScore] = dict(fleet.holdouts)
        self.standing_changed = False  # whether another confirmation may be wanted
        self.clock = now.run_time
        self.wall = now.wall_time
        self.task_rules = rules  # without what the operator has set since
        self.rules = in_force(rules, fleet.run)
        self.actions: list[Action] = []

    def fleet(self) -> Fleet:
        return Fleet(
            run=self.run, agents=self.agents, pending=self.pending, heartbeats=self.heartbeats, jobs=self.jobs,
            measured=self.measured, holdouts=self.holdouts,
        )  # fmt: skip

    @property
    def standing(self) -> Standing:
        return Standing(best=self.run.best, half=self.run.half, measured=self.measured)

    def set_standing(self, standing: Standing) -> None:
        self.set_run(best=standing.best, half=standing.half)
        self.measured = standing.measured
        self.standing_changed = True

    def act(self, action: Action) -> None:
        self.actions.append(action)

    def log(self, type: str, text: str = "", agent: str = "", *, launch: int = 0, reason: Reason | None = None) -> None:
        self.act(LogEvent(type=type, text=text, agent=agent, launch=launch, reason=reason))

    def log_messages(self, type: str, text: str, agent: str, messages: Iterable[PendingMessage]) -> None:
        """Log what became of these messages."""
        named = tuple(
            LoggedMessage(name=message.name, id=message.id, attempt=message.attempt, since=message.since)
            for message in messages
        )
        self.act(LogEvent(type=type, text=text, agent=agent, messages=named))

    def log_skipped(self, heartbeat: str, agent: str, reason: Reason) -> None:
        """Log that a heartbeat was due and is not sent."""
        named = (LoggedMessage(name=heartbeat),)
        self.act(LogEvent(type="skipped", text=heartbeat, agent=agent, reason=reason, messages=named))

    def alert(self, text: str, agent: str = "", reason: Reason | None = None) -> None:
        """Alert the operator once. The alert's id stays the same if it has to be delivered again."""
        made = Alert(id=f"{self.run.id}-alert-{self.run.alert_count + 1}", text=text, agent=agent, reason=reason)
        self.set_run(alert_count=self.run.alert_count + 1, undelivered_alerts=(*self.run.undelivered_alerts, made))
        self.act(Notify(id=made.id, text=text, agent=agent, reason=reason))

    def settle_alert(self, number: int) -> None:
        """Acknowledge one alert, because its cause is over."""
        if number > self.run.alerts_acknowledged:
            self.set_run(alerts_settled=(*self.run.alerts_settled, number))

    # `Any`: the values of the records' fields; `replace` checks the names when it runs.
    def set_run(self, **changes: Any) -> None:
        self.run = replace(self.run, **changes)

    def set_agent(self, name: str, **changes: Any) -> Agent:
        self.agents[name] = replace(self.agents[name], **changes)
        return self.agents[name]

    def holder(self, owner: str) -> Run | Agent:
        """Return the record of an owner of heartbeats: an agent, or the fleet."""
        return self.run if owner == FLEET else self.agents[owner]

    def set_targets(self, owner: str, targets: Mapping[str, float]) -> None:
        if owner == FLEET:
            self.set_run(targets=targets)
        else:
            self.set_agent(owner, targets=targets)

    def set_pending(self, number: int, **changes: Any) -> PendingAttempt:
        self.pending[number] = replace(self.pending[number], **changes)
        return self.pending[number]

    def set_job(self, number: int, **changes: Any) -> Job:
        self.jobs[number] = replace(self.jobs[number], **changes)
        return self.jobs[number]

    def queue_message(self, agent: str, message: PendingMessage) -> None:
        self.set_agent(agent, pending_messages=(*self.agents[agent].pending_messages, message))

    def queue_notice(self, agent: str, name: str, due: float, *, defers: bool = True, **fields: Any) -> str:
        """Queue a message that no heartbeat has fired: the operator's words, or a notice by Coral itself. Returns its
        id."""
        id = self.next_message_id()
        notice = PendingMessage(id=id, name=name, since=self.clock, due=due, defers=defers, **fields)
        self.queue_message(agent, notice)
        return id

    def change_messages(self, agent: str, changed: Iterable[PendingMessage]) -> None:
        """Replace each pending message of the agent that has the id of one of these by that one."""
        by_id = {message.id: message for message in changed}
        pending = self.agents[agent].pending_messages
        self.set_agent(agent, pending_messages=tuple(by_id.get(message.id, message) for message in pending))

    def withdraw(self, agent: str, is_pointless: Callable[[PendingMessage], bool], why: str) -> None:
        """Drop the agent's pending messages that are pointless, except those in flight: its launch was given them
        already."""
        withdrawn = [message for message in self.agents[agent].undelivered if is_pointless(message)]
        for message in withdrawn:
            self.log_messages("withdrawn", f"{message.name} ({message.id}){why}", agent, (message,))
        if withdrawn:
            pending = self.agents[agent].pending_messages
            self.set_agent(agent, pending_messages=tuple(message for message in pending if message not in withdrawn))

    def next_message_id(self) -> str:
        self.set_run(message_count=self.run.message_count + 1)
        return f"h{self.run.message_count}"
