"""The constants of all decisions, and questions that several of them ask: whether an agent may be interrupted, how long
it may be silent, how many submissions it may have in hand."""

from collections import Counter
from collections.abc import Iterable, Mapping

from coral.fleet.agent_state import Agent, PendingMessage
from coral.fleet.rules import Rules
from coral.fleet.run_state import Job, PendingAttempt, Run

MILLION = 1_000_000  # tokens, for which prices are stated
TOOL_ACTIVITY = "tool"  # the activity that a runtime reports while a tool is at work
STARTING = "starting"  # the activity of a launch that has printed nothing yet
BUSY_SECONDS = 60.0  # for so long after its last output an agent that reported a tool counts as at work with it
INLINE_SECONDS = 30.0  # within which `coral eval` acknowledges what it printed, or an interrupt follows
KILL_AGAIN_SECONDS = 2.0  # from the first SIGKILL to the second; then twice as long each time
MAX_KILLS = 5  # then, after a minute, a process is reported as unkillable and given up
MAX_PENDING_MESSAGES = 5  # an agent with this many pending messages gets no further checkpoint
MAX_CHAIN = 10  # heartbeats in a row, each set off by the answer to the one before, that an agent gets
MAX_UNANSWERED = 3  # after so many unanswered checkpoints in a row the operator is alerted, once
REPLAY_WINDOW = 64  # ids of an agent's latest submissions that are remembered
REQUEST_WINDOW = 128  # requests that were carried out that are remembered
LEAST_AHEAD = 2  # grades beyond those that a cluster has room for, where it adds nodes for them
INTAKE_AHEAD = 3  # submissions that an agent may have in hand beyond those that could be graded now
MAX_INTAKE_RETRIES = 3  # further tries to bring a commit into the hub, where that failed by our fault
INTAKE_RETRY_SECONDS = 5.0  # between those tries
START_RETRY_SECONDS = 5.0  # between tries to start a grade ...
MAX_START_RETRIES = 3  # ... and how many are made after the first, checkout included
MAX_LOST_GRADES = 3  # grades of one commit that may end on a full disk; more are no coincidence
WORTH_AN_ALERT = 600.0  # seconds for which a machine stood still, or by which its time of day was set
WRITE_RETRY_SECONDS = 5.0  # until the second try to write a record, an alert or an answer; then twice as long each time
LONGEST_WRITE_RETRY_SECONDS = 80.0
MIN_SEED_GRADES = 3  # of a task whose noise is estimated: grades of the seed; all equal, they are enough
MAX_SEED_GRADES = 10  # else so many, while no attempt waits ...
SEED_GRADES_SECONDS = 600.0  # ... in the first seconds of the run
FREE_CONFIRMATION_SECONDS = 60.0  # of grading again that no share limits
MIN_FAILURES_WATCHED = 10  # attempts from which one reason that fails more than half of them is an alert
BREAKER_AGENTS = 4  # of one account: with more, more crashes are needed to pause their starts
MAX_DENIALS = 3  # in a row; one more is taken to be for good
MAX_LOST_LAUNCHES = 3  # in a row and without a submission; one more counts as a crash
MAX_VOIDS = 3  # void attempts in a row that hold up the queue ...
QUEUE_PAUSE_SECONDS = 300.0  # ... for so many seconds
PRODUCTIVE_SECONDS = 60.0  # a turn that lasted so long is productive even without an attempt
PROBE_SECONDS = 30.0  # how long a probe must work without meeting the account's limit again
RETURN_SECONDS = 2.0  # between the starts of the other agents of that account
JITTER_SECONDS = 60.0  # at most so much is added to a reset that a provider named
SCAN_SECONDS = 60.0  # a scan for edited files that takes longer has found nothing
REST_SECONDS = 1800.0  # how long an agent rests once every escalation was in vain; doubled each time ...
MAX_REST_DOUBLINGS = 4  # ... at most so often
JOB_EXCUSE_SECONDS = 8 * 3600.0  # after its last progress; so long a job explains that an agent makes none
BUDGET_NOTICES_AT = (0.8, 0.95)  # the parts of any budget at which agents are asked to land their work
MAX_JOBS = 3  # of one agent at a time
MAX_NOTICE_JOBS = 10  # jobs that one notice names ...
MAX_NOTICE_OUTPUTS = 3  # ... and of how many of them it has the last lines


def kill_again_at(now: float, kills: int) -> float:
    """Return when a process that has not ended is killed again. `kills`: how often it was killed before. A process that
    waits for a slow disk or a file server ends only when these have answered."""
    return now + KILL_AGAIN_SECONDS * 2.0**kills


def is_due(message: PendingMessage, agent: Agent, now: float) -> bool:
    """Return whether this message alone justifies an interrupt now."""
    if message.quiet or now < message.due:
        return False
    at_a_tool = agent.activity == TOOL_ACTIVITY and now < agent.last_output_at + BUSY_SECONDS
    return not (message.defers and at_a_tool)


def ttl_of(agent: Agent, rules: Rules) -> float:
    """Return for how many seconds the agent's launch may be silent in its present phase."""
    return rules.ttl_of(agent.activity if agent.has_output else STARTING)


def may_interrupt(agent: Agent, now: float, rules: Rules) -> bool:
    """Return whether the agent's launch may be interrupted. It may once its turn has begun and its conversation has the
    messages that it was given, because its session can be resumed from then on and they come once; and it may when
    `rules.start_grace` seconds have passed without that."""
    return (agent.has_output and not agent.in_flight) or now >= agent.spawned_at + rules.start_grace


def waits_until(agent: str, pending: Iterable[PendingAttempt]) -> float | None:
    """Return until when the agent waits in `coral eval`, on the run's clock; in that time it neither works nor stalls.
    None where none of its attempts is pending."""
    own = (attempt for attempt in pending if attempt.submission.agent == agent and attempt.is_submitted)
    return max((attempt.waited_until for attempt in own), default=None)


def runs_job(agent: str, jobs: Mapping[int, Job]) -> bool:
    return any(job.agent == agent for job in jobs.values())


def slots_of(run: Run, rules: Rules) -> int:
    """Return how many grades may be in flight now. A cluster that grows gets twice what it has room for, at least
    LEAST_AHEAD more: it adds nodes only for what waits there. Any other gets at least one, which then waits for a node
    that can run it."""
    if not rules.follows_cluster:
        return rules.slots
    capacity = run.cluster_capacity
    return min(rules.slots, capacity + max(capacity, LEAST_AHEAD) if rules.cluster_grows else max(capacity, 1))


def intake_capacity(agents: Iterable[str], pending: Iterable[PendingAttempt], slots: int) -> dict[str, int]:
    """Return how many more submissions of each agent are accepted now; the others wait in its inbox. Attempts are
    graded in the order of their numbers, so without this bound an agent that submits hundreds would delay all
    others."""
    in_hand = Counter(attempt.submission.agent for attempt in pending if attempt.is_submitted)
    return {agent: max(slots + INTAKE_AHEAD - in_hand[agent], 0) for agent in agents}


def is_repeat(recent: tuple[str, ...], id: str) -> bool:
    """Return whether a submission was accepted before. Exact for ids within the window, in any order; an id below all
    ids of a full window counts as a repeat, because `remember` would drop it at once."""
    return id in recent or id not in remember(recent, id)


def remember(recent: tuple[str, ...], id: str) -> tuple[str, ...]:
    """Return the window of ids with one more in it, the smallest first."""
    return tuple(sorted((*recent, id))[-REPLAY_WINDOW:])
