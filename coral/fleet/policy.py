"""The figures the decisions go by, and the small pure questions that are asked of them."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping

from attempts.record import Kind
from coral.fleet.agent_state import Agent, PendingMessage
from coral.fleet.rules import Rules
from coral.fleet.run_state import Job, PendingAttempt

MILLION = 1_000_000  # tokens, for which prices are stated
TOOL_ACTIVITY = "tool"  # the phase in which a runtime reports that a tool is at work
BUSY_SECONDS = 60.0  # how long that report is believed
INLINE_SECONDS = 30.0  # how long `coral eval` has to acknowledge what it printed
KILL_AGAIN_SECONDS = 2.0
MAX_KILLS = 5  # after that many, a process is named as unkillable and given up
MAX_OWED = 5  # an agent that owes this many answers gets no further checkpoint
MAX_UNANSWERED = 3  # checkpoints in a row that were left unanswered: the operator is told, once
REPLAY_WINDOW = 64  # how many ids of submissions are remembered per agent, whatever their order
REQUEST_WINDOW = 128  # how many requests that were carried out are remembered
AHEAD = 3  # submissions that an agent may have in hand beyond those that could be graded now
MAX_TRIES = 3  # of taking a commit in once more, where it is not its author's fault that it failed
TAKE_AGAIN_SECONDS = 5.0
START_AGAIN_SECONDS = 5.0  # after a grade that could not be begun ...
MAX_UNSTARTED = 3  # ... and how often it is tried again, from its checkout on
MAX_LOST = 3  # more grades of one commit than these do not end on a full disk by chance
MAX_VOIDS = 3
QUEUE_PAUSE = 300.0
PRODUCTIVE_SECONDS = 60.0
PROBE_SECONDS = 30.0  # how long the one who tries an account must go on without meeting its limit again
RETURN_SECONDS = 2.0  # between the others who come back after that
JITTER_SECONDS = 60.0  # the most that is added to a reset that a provider named
LOOK_SECONDS = 60.0  # how long a look at an agent's files may take before it has found nothing
REST_SECONDS = 1800.0  # how long an agent rests that nothing has helped; doubled each time ...
MAX_DOUBLINGS = 4  # ... so often at most
EXCUSED_SECONDS = 8 * 3600.0  # after its last progress, for which a job excuses that nothing comes of an agent's work
LAND_AT = (0.8, 0.95)  # the parts of any budget at which agents are asked to land what they have in hand
MAX_JOBS = 3  # of one agent that run at once
MAX_ENDS = 10  # jobs that one word of their ends names ...
MAX_LAST = 3  # ... and of how many of them it has the last lines


def back_off(run: str, agent: Agent, failures: int, rules: Rules) -> float:
    """Seconds to wait after so many failures in a row: doubling, bounded, up to a fifth more by a hashed jitter."""
    seconds: float = min(rules.backoff * 2.0 ** min(failures - 1, 30), rules.backoff_max)
    digest = hashlib.sha256(f"{run}/{agent.name}/{agent.launch}".encode()).digest()
    return seconds * (1.0 + 0.2 * digest[0] / 255)


def is_due(owed: PendingMessage, agent: Agent, now: float) -> bool:
    """Whether this alone justifies an interrupt now."""
    if now < owed.due:
        return False
    at_a_tool = agent.activity == TOOL_ACTIVITY and now < agent.last_output_at + BUSY_SECONDS
    return not (owed.defers and at_a_tool)


def may_interrupt(agent: Agent, now: float, rules: Rules) -> bool:
    """Nobody is interrupted before there is a session to come back to; a silent start is not waited for for ever."""
    return agent.has_output or now >= agent.spawned_at + rules.start_grace


def waits_until(agent: str, pending: Iterable[PendingAttempt]) -> float | None:
    """Until when the agent sits in `coral eval`, a known place where it neither works nor stalls; None is nowhere."""
    return max((attempt.waited_until for attempt in pending if attempt.submission.agent == agent), default=None)


def runs_job(agent: str, jobs: Mapping[int, Job]) -> bool:
    """Whether a job of this agent goes on: then something is to come of its work, however silent it is itself."""
    return any(job.agent == agent for job in jobs.values())


def intake_capacity(agents: Iterable[str], pending: Iterable[PendingAttempt], rules: Rules) -> dict[str, int]:
    """How many more submissions of each agent are taken up now; the rest waits in its inbox. Attempts are graded in
    the order of their numbers, so this is what keeps one that hands in hundreds from delaying all others."""
    in_hand = Counter(attempt.submission.agent for attempt in pending)
    return {agent: max(rules.slots + AHEAD - in_hand[agent], 0) for agent in agents}


def is_repeat(recent: tuple[str, ...], id: str) -> bool:
    """Whether a submission was seen before. A window like that against replayed packets: exact for any order within
    it, and whatever would be forgotten at once counts as seen."""
    return id in recent or id not in remember(recent, id)


def remember(recent: tuple[str, ...], id: str) -> tuple[str, ...]:
    """The window with one more id, the smallest first."""
    return tuple(sorted((*recent, id))[-REPLAY_WINDOW:])


def duration(seconds: float) -> str:
    """`42 s`, `7 min`, `3 h 05 min`: whole minutes only, so that what is left is never all once some is gone."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole} s"
    minutes = whole // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


def counts_same(kind: Kind) -> bool:
    """Whether an equal tree makes grading again pointless; a confirmation is asked for to be measured again."""
    return kind is not Kind.CONFIRM
