"""The health of a fleet: what is wrong with it now, since when, and which of these troubles the operator is alerted of.

Health is judged by rules over the fleet's own state, without a model. A trouble that has an alert elsewhere (a full
disk, one reason for most failures, a closed account) is only shown, and not alerted again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from coral.fleet.agent_state import Agent, Order, Phase
from coral.fleet.events import Shortage
from coral.fleet.policy import MAX_UNANSWERED
from coral.fleet.reasons import ReasonKind
from coral.fleet.rules import Rules
from coral.fleet.run_state import AttemptStep, Fleet, Gains, Run
from coral.fleet.transaction import Transaction

FAILING_LAUNCHES = 3  # so many in a row, and an agent counts as failing
OUTAGE_SECONDS = 120.0  # of nothing but retries of its model
STUCK_SECONDS = 1800.0  # without a publication while attempts wait, or two grades' time limits if that is more
GAINLESS_SECONDS = 4 * 3600.0  # without a new best, in which the fleet has submitted
GAINLESS_ATTEMPTS = 20
GAINS_COMPARED = 3  # after so many gains their average cost is known
RECENT_SECONDS = 900.0  # for so long it is shown that the machine stood still, or that its time of day was set
COSTLY = 5.0  # times the average cost of a gain: spent without a new one, this is a trouble


class HealthLevel(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"  # the run goes on, but not with all that it has
    UNHEALTHY = "unhealthy"  # the run achieves nothing until the trouble is over
    UNKNOWN = "unknown"  # nobody supervises, or nothing was heard of the supervisor


class Trouble(StrEnum):
    """What can be wrong. The key of a trouble of one agent or account names it too, see `TroubleFound.key`."""

    DISK = "disk"
    CLUSTER = "cluster"  # that grades
    MEMORY = "memory"
    LOAD = "load"
    NOT_WATCHED = "not_watched"  # folders, in which new files are found later
    SLEPT = "slept"  # the machine, or the supervisor
    CLOCK_SET = "clock_set"
    NOBODY_WORKS = "nobody_works"  # all are parked
    QUEUE_PAUSED = "queue_paused"  # by void attempts in a row
    QUEUE_STUCK = "queue_stuck"
    GRADING_HELD = "grading_held"
    NO_GAIN = "no_gain"
    COSTLY_GAIN = "costly_gain"
    ONE_FAILURE = "one_failure"  # one reason fails most attempts
    AT_LIMIT = "at_limit"
    ACCOUNT_CLOSED = "account_closed"
    STARTS_PAUSED = "starts_paused"  # after many crashes
    AGENT_STALLED = "agent_stalled"
    AGENT_FAILING = "agent_failing"
    AGENT_OUTAGE = "agent_outage"
    AGENT_GIVEN_UP = "agent_given_up"
    CHECKPOINTS_UNANSWERED = "checkpoints_unanswered"
    # Troubles of the supervisor, which cannot be seen in the state of a fleet.
    SUPERVISOR_GONE = "supervisor_gone"
    STATUS_OLD = "status_old"
    NOT_RUNNING = "not_running"
    NOT_MADE = "not_made"  # `coral start` has not finished making it: it still works, or was killed


UNHEALTHY = {
    Trouble.DISK,
    Trouble.CLUSTER,
    Trouble.NOBODY_WORKS,
    Trouble.QUEUE_PAUSED,
    Trouble.QUEUE_STUCK,
    Trouble.SUPERVISOR_GONE,
}
UNKNOWN = {Trouble.STATUS_OLD, Trouble.NOT_RUNNING, Trouble.NOT_MADE}
ALERTED = {Trouble.MEMORY, Trouble.QUEUE_STUCK, Trouble.NO_GAIN, Trouble.COSTLY_GAIN}
TROUBLE_OF = {
    Shortage.MEMORY: Trouble.MEMORY,
    Shortage.LOAD: Trouble.LOAD,
    Shortage.WATCHES: Trouble.NOT_WATCHED,
}


@dataclass(frozen=True, slots=True)
class TroubleFound:
    """A trouble that the fleet has now. `of`: the agent or account that has it; empty where it is the whole fleet's.
    `since`: seconds of the run's clock."""

    trouble: Trouble
    of: str = ""
    since: float = 0.0

    @property
    def key(self) -> str:
        return f"{self.trouble} {self.of}".rstrip()

    @property
    def level(self) -> HealthLevel:
        return level_of(self.trouble)


def level_of(trouble: Trouble) -> HealthLevel:
    return (
        HealthLevel.UNHEALTHY
        if trouble in UNHEALTHY
        else HealthLevel.UNKNOWN
        if trouble in UNKNOWN
        else HealthLevel.DEGRADED
    )


def health_of(fleet: Fleet) -> tuple[HealthLevel, tuple[TroubleFound, ...]]:
    """Return the fleet's level and its troubles, the worst first, as the last decision noted them."""
    found = [TroubleFound(*_parts(key), since) for key, since in fleet.run.troubles.items()]
    found.sort(key=lambda trouble: (trouble.level is not HealthLevel.UNHEALTHY, trouble.since))
    return (found[0].level if found else HealthLevel.HEALTHY), tuple(found)


def _parts(key: str) -> tuple[Trouble, str]:
    trouble, _, of = key.partition(" ")
    return Trouble(trouble), of


def update_troubles(transaction: Transaction) -> None:
    """Note what is wrong now and since when, and forget what is over; alert the operator of troubles that have no alert
    elsewhere."""
    _note_waiting(transaction)
    run = transaction.run
    found = (
        []
        if run.stopping or run.finished
        else list(_troubles(transaction.fleet(), transaction.clock, transaction.rules))
    )
    if run.troubles.keys() == {trouble.key for trouble in found}:
        return
    for new in found:
        if new.key not in run.troubles and new.trouble in ALERTED:
            transaction.alert(ALERTS[new.trouble])
    since = {trouble.key: run.troubles.get(trouble.key, transaction.clock) for trouble in found}
    transaction.set_run(troubles=since)


ALERTS: Mapping[Trouble, str] = {
    Trouble.QUEUE_STUCK: "attempts wait, and none was published for a long time",
    Trouble.MEMORY: "the machine has little memory left: programs may be ended for it",
    Trouble.NO_GAIN: "the fleet has found nothing better for hours: `coral tell` may help, `coral stop` ends it",
    Trouble.COSTLY_GAIN: "more was spent since the last new best than on several before it",
}


def next_changes(fleet: Fleet, rules: Rules) -> Iterator[float]:
    """Yield the times, on the run's clock, at which a trouble may begin or end without an event."""
    run = fleet.run
    if run.waiting_since is not None:
        yield run.waiting_since + _stuck_after(rules)
    yield run.gains.at + GAINLESS_SECONDS
    yield from (at + RECENT_SECONDS for at in (run.slept_at, run.clock_set_at) if at is not None)
    for agent in fleet.agents.values():
        if agent.retrying_since is not None:
            yield agent.retrying_since + OUTAGE_SECONDS


def note_gain(transaction: Transaction) -> None:
    """Note when the fleet's best was found, and how many attempts and how much money had been used by then."""
    run, gains = transaction.run, transaction.run.gains
    if run.best == gains.best and run.epoch == gains.epoch:
        return
    is_first = run.epoch != gains.epoch or gains.best is None
    count = 0 if is_first else gains.count + 1
    attempts, money = run.progress.evals, run.spent.money or 0.0
    gains = Gains(
        best=run.best, epoch=run.epoch, count=count, at=transaction.clock, attempts=attempts, money=money,
        money_before=money if is_first else gains.money_before,
    )  # fmt: skip
    transaction.set_run(gains=gains)


def _note_waiting(transaction: Transaction) -> None:
    """Note since when attempts have waited for a slot while none was published; a publication begins that time anew."""
    run = transaction.run
    waits = any(
        attempt.step is AttemptStep.QUEUED and not attempt.is_holdout for attempt in transaction.pending.values()
    )
    since = transaction.clock if run.waiting_since is None else run.waiting_since
    wanted = since if waits and not run.is_grading_held and not run.cluster_problem else None
    if wanted != run.waiting_since:
        transaction.set_run(waiting_since=wanted)


def _troubles(fleet: Fleet, clock: float, rules: Rules) -> Iterator[TroubleFound]:
    run, gains = fleet.run, fleet.run.gains
    if run.disk_problem:
        yield TroubleFound(Trouble.DISK)
    if run.cluster_problem:
        yield TroubleFound(Trouble.CLUSTER)
    yield from (TroubleFound(TROUBLE_OF[shortage]) for shortage in run.short)
    for trouble, at in ((Trouble.SLEPT, run.slept_at), (Trouble.CLOCK_SET, run.clock_set_at)):
        if at is not None and clock - at < RECENT_SECONDS:
            yield TroubleFound(trouble)
    if _nobody_works(fleet):
        yield TroubleFound(Trouble.NOBODY_WORKS)
    if clock < run.queue_paused_until:
        yield TroubleFound(Trouble.QUEUE_PAUSED)
    if run.is_grading_held:
        yield TroubleFound(Trouble.GRADING_HELD)
    if _is_stuck(run, clock, rules):
        yield TroubleFound(Trouble.QUEUE_STUCK)
    tried = run.progress.evals - gains.attempts
    if clock - gains.at >= GAINLESS_SECONDS and tried >= GAINLESS_ATTEMPTS:
        yield TroubleFound(Trouble.NO_GAIN)
    since, cost = (run.spent.money or gains.money) - gains.money, gains.money - gains.money_before
    if gains.count >= GAINS_COMPARED and cost > 0 and since > COSTLY * cost / gains.count:
        yield TroubleFound(Trouble.COSTLY_GAIN)
    if any(_fails_most(fleet, kind) for kind in run.alerted_failures):
        yield TroubleFound(Trouble.ONE_FAILURE)
    yield from _of_accounts(fleet, clock)
    yield from _of_agents(fleet, clock)


def _of_accounts(fleet: Fleet, clock: float) -> Iterator[TroubleFound]:
    for account, limit in fleet.run.limits.items():
        yield TroubleFound(Trouble.ACCOUNT_CLOSED if limit.closed else Trouble.AT_LIMIT, account)
    for account, breaker in fleet.run.breakers.items():
        if breaker.paused_until > clock:
            yield TroubleFound(Trouble.STARTS_PAUSED, account)


def _of_agents(fleet: Fleet, clock: float) -> Iterator[TroubleFound]:
    given_up = (ReasonKind.GIVEN_UP, ReasonKind.UNKILLABLE)
    for name, agent in _conspicuous(fleet):
        if agent.phase is Phase.RETIRED:
            if agent.reason.kind in given_up:
                yield TroubleFound(Trouble.AGENT_GIVEN_UP, name)
            continue
        if agent.stall.escalations:
            yield TroubleFound(Trouble.AGENT_STALLED, name)
        if agent.crashes >= FAILING_LAUNCHES:
            yield TroubleFound(Trouble.AGENT_FAILING, name)
        if agent.retrying_since is not None and clock - agent.retrying_since >= OUTAGE_SECONDS:
            yield TroubleFound(Trouble.AGENT_OUTAGE, name)
        if agent.unanswered_checkpoints >= MAX_UNANSWERED:
            yield TroubleFound(Trouble.CHECKPOINTS_UNANSWERED, name)


def _conspicuous(fleet: Fleet) -> list[tuple[str, Agent]]:
    """Return the few agents that may have a trouble; a cheap test, because every decision looks at all agents."""
    retired = Phase.RETIRED  # looked up once: each look-up of an enum's member is slow
    return [
        item
        for item in fleet.agents.items()
        if (agent := item[1]).crashes
        or agent.stall.escalations
        or agent.retrying_since is not None
        or agent.unanswered_checkpoints
        or agent.phase is retired
    ]


def _nobody_works(fleet: Fleet) -> bool:
    """Return whether the operator wants at least one agent at work, and all of those are parked."""
    work, retired, parked = Order.WORK, Phase.RETIRED, Phase.PARKED
    wanted = False
    for agent in fleet.agents.values():
        if agent.order is work and agent.phase is not retired:
            if agent.phase is not parked:
                return False
            wanted = True
    return wanted


def _stuck_after(rules: Rules) -> float:
    return max(STUCK_SECONDS, 2 * rules.grade_timeout)


def _is_stuck(run: Run, clock: float, rules: Rules) -> bool:
    return run.waiting_since is not None and clock - run.waiting_since >= _stuck_after(rules)


def _fails_most(fleet: Fleet, kind: str) -> bool:
    group = fleet.run.failures.get(kind)
    return group is not None and 2 * group.count > fleet.run.progress.evals - fleet.run.earlier_evals
