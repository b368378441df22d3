"""A process of the simulated world: what it obeys, what it printed, how it ended, what it left behind."""

from dataclasses import dataclass, field

from coral.fleet.agent_state import OutputCounts, Spent
from coral.fleet.events import Ending, Graded, Outcome, OutputSeen, Used
from coral.fleet.run_state import PendingAttempt

OBEDIENT, NEEDS_TERM, NEEDS_KILL, UNKILLABLE = range(4)  # which signal a process obeys at last
# What the grader says of a tree: a score, or that it fails, makes the grader crash, or hang until it is ended.
SCORES = (1.0, 2.0, 3.0, 2.25, 1.0, 0.0, 4.0)
FAILS, CRASHES, HANGS = 7, 8, 9


@dataclass(slots=True)
class Process:
    """A launch. `deaf`: which signals it does not obey; `unread`: whether it printed more than was heard; `place`: how
    much it has printed, and `count` what of it is counted; `silently`: the clock at an edit of which it says nothing;
    `used`: tokens."""

    who: str
    launch: int
    deaf: int = OBEDIENT
    printed: bool = False
    unread: bool = False
    busy: str = ""
    reply: str = ""
    place: int = 0
    count: OutputCounts = field(default_factory=OutputCounts)
    silently: float | None = None
    used: int = 0
    ending: Ending | None = None
    leftovers: bool = False
    lingered_at: float = -1.0
    printed_inline: list[str] = field(default_factory=list)

    @property
    def is_gone(self) -> bool:
        return self.ending is not None and not self.leftovers


def heard(process: Process) -> OutputSeen:
    """What an agent has printed by now."""
    return OutputSeen(
        agent=process.who,
        launch=process.launch,
        session=f"session of {process.who}",
        activity=process.busy,
        reply=process.reply,
        place=process.place,
        count=process.count,
    )


def used(process: Process) -> Used:
    """What an agent has used by now."""
    return Used(agent=process.who, launch=process.launch, figure=Spent(output=process.used))


def graded(process: Process, pending: PendingAttempt | None, broken: bool) -> Graded:
    """What a grading process came to. A broken grader crashes, whatever it grades."""
    tree = 0 if pending is None or pending.suspicion else int(pending.tree, 16)
    number, launch = int(process.who[1:]), process.launch
    if process.ending is not Ending.CLEAN or broken or tree == CRASHES:
        return Graded(number=number, launch=launch, outcome=Outcome.CRASHED, reason="crashed")
    if tree >= FAILS:
        return Graded(number=number, launch=launch, outcome=Outcome.FAILED, reason="wrong")
    return Graded(number=number, launch=launch, outcome=Outcome.SCORED, score=SCORES[tree])
