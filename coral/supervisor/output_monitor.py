"""Reads what agents' programs print, while they print it: yields events, and keeps what the output says of each
launch."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from coral.fleet.agent_state import OutputCounts, Spent
from coral.fleet.events import Ending, OutputSeen, Used
from coral.runtimes.line_tail import LineTail, end_of
from coral.runtimes.messages import ReplyParts
from coral.runtimes.model import Counted, LaunchSummary, OutputEvent, Runtime, Usage, highest, total
from coral.supervisor.context import RunContext
from heartbeats.beat import Status
from heartbeats.reply import OtherReply, parse_reply

REMIND_SECONDS = 15.0  # how often output that says nothing new is an event all the same
FAILED = (Ending.LIMIT, Ending.TERMINAL, Ending.DENIED, Ending.CRASHED, Ending.UNKNOWN_SESSION)
QUIET_SECONDS = 30.0  # after so long without output, a program's is read less often
QUIET_PAUSE = 2.0  # seconds between those readings
MAX_ANSWERS = 8  # to checkpoints that one reading reports; the latest


@dataclass(slots=True)
class OutputMonitor:
    """What is known of a launch of an agent from its output."""

    agent: str
    launch: int
    runtime: Runtime
    tail: LineTail
    errors: Path
    session: str | None
    phase: str = ""
    message: str = ""
    progress: float | None = None
    status: Status = Status.PENDING
    printed_at: float = 0.0
    alive_at: float = 0.0  # when it printed, or was found computing
    read_at: float = float("-inf")
    has_begun: bool = False  # it printed a line that its runtime knows
    has_output: bool = False  # something that shows that the turn has begun
    has_prompt: bool = False  # something that shows that the conversation has the prompt
    last_error: str = ""
    last_retry: str = ""  # why the program asked its model again, as it said last
    limit_until: float | None = None
    ending: Ending | None = None
    count: OutputCounts = field(default_factory=OutputCounts)
    _exact: bool = False
    _reply_parts: ReplyParts = field(default_factory=ReplyParts)
    _usage: Usage | None = None
    _used: Used | None = None
    _seen: OutputSeen | None = None
    _seen_at: float = 0.0
    _last_reply: str = ""
    _replies: list[tuple[int, str]] = field(default_factory=list)
    _reply_place: int = 0

    def is_due(self, now: float) -> bool:
        """Return whether to read again. Silent programs are read less often: reading their output is most of what an
        idle fleet costs."""
        return now - self.printed_at < QUIET_SECONDS or now - self.read_at >= QUIET_PAUSE

    def read(self, now: float, *, ended: bool = False) -> list[OutputSeen]:
        """Read what is new. Returns an event if the output says more than the last event did, or after REMIND_SECONDS
        with output, and one for each answer to a checkpoint. `now` is the run's clock; `ended`: take an unfinished last
        line as whole."""
        printed, self.read_at, self.status = False, now, Status.RUNNING
        for line in self.tail.rest() if ended else self.tail.lines():
            printed = True
            events = self.runtime.read(line)
            self.has_begun = self.has_begun or any(not event.unknown for event in events)
            begun = _signs_of_turn(events)
            self.has_output = self.has_output or bool(begun)
            self.has_prompt = self.has_prompt or any(event.proves_prompt for event in begun)
            for event in self._reply_parts.join(events):
                self._take(event)
                self._take_reply(event.reply)
        if printed:
            self.printed_at = self.alive_at = now
        if not self.has_output or (self.session is None and self.runtime.resumes):
            return []
        session = self.session if self.runtime.resumes else None
        seen = OutputSeen(
            agent=self.agent,
            launch=self.launch,
            session=session,
            has_prompt=self.has_prompt,
            activity=self.phase,
            count=self.count,
        )
        replies, self._replies = self._replies, []
        says_more = any(_is_answer(reply) or reply != self._last_reply for _, reply in replies)
        reminds = printed and now - self._seen_at >= REMIND_SECONDS
        if seen == self._seen and not says_more and not reminds:
            return []
        self._seen, self._seen_at, self._last_reply = seen, now, replies[-1][1] if replies else self._last_reply
        return [replace(seen, reply=reply, place=place) for place, reply in replies] or [seen]

    def _take_reply(self, reply: str) -> None:
        """Keep, of the replies of one reading, those that answer a checkpoint, and the last one. Each gets a place of
        its own in the output, because `decide` handles a reply only if its place is new."""
        if not reply:
            return
        self._reply_place = max(self._reply_place + 1, self.tail.place)
        if self._replies and not _is_answer(self._replies[-1][1]):
            del self._replies[-1]
        self._replies = [*self._replies[1 - MAX_ANSWERS :], (self._reply_place, reply)]

    def read_usage_log(self, state: Path) -> None:
        """Read, once the launch has ended, what it used from the log that its program keeps, if there is one."""
        if self.session and (usage := self.runtime.usage(state, self.session)) is not None:
            self._usage = highest(self._usage, usage)

    def used(self) -> list[Used]:
        """Return what the program reports to have used, if that has changed since the last report."""
        figure = self._usage
        if figure is None:
            return []
        session = (self.session or "") if figure.counted is Counted.SESSION else ""
        spent = Spent(input=figure.input, cached=figure.cached, output=figure.output, money=figure.cost)
        event = Used(agent=self.agent, launch=self.launch, figure=spent, session=session)
        if event == self._used:
            return []
        self._used = event
        return [event]

    def summary(self) -> LaunchSummary:
        """Return the facts by which the runtime judges how the launch ended."""
        return LaunchSummary(
            output=self.has_output,
            session=self.session or "",
            error=self.last_error,
            stderr=end_of(self.errors),
            limit_until=self.limit_until,
            ending=self.ending,
        )

    def _take(self, event: OutputEvent) -> None:
        self.session = event.session or self.session
        self.phase = event.phase or self.phase
        self.message = event.message or self.message
        self.progress = event.progress if event.phase else self.progress
        self.last_error = event.error or self.last_error
        self.last_retry = (event.retry.reason if event.retry is not None else "") or self.last_retry
        self.ending = event.ending or self.ending
        self.count = counted(self.count, event)
        if event.usage is not None:
            self._usage = total(self._usage, event.usage)
        if event.limit_until is not None and (event.exact or not self._exact):
            # A time that the provider named exactly is not replaced by one that was read from a sentence.
            self.limit_until, self._exact = event.limit_until, event.exact


class OutputMonitors:
    """The monitor of every agent's newest launch: opened when the launch is prepared or taken over, read by the
    gatherer, shown by the report."""

    def __init__(self, run_context: RunContext) -> None:
        self._layout = run_context.layout
        self._roster = run_context.roster
        self.by_agent: dict[str, OutputMonitor] = {}
        self._marked: dict[str, OutputMonitor] = {}

    def open(self, agent: str, launch: int, session: str | None, clock: float) -> OutputMonitor:
        """Open the monitor of a launch, which reads its output from the beginning. Replaces the one of the agent's last
        launch."""
        output, errors = LineTail(self._layout.output(agent, launch)), self._layout.errors(agent, launch)
        runtime = self._roster.runtime(agent)
        monitor = OutputMonitor(agent, launch, runtime, output, errors, session, printed_at=clock)
        self.by_agent[agent] = monitor
        return monitor

    def find(self, agent: str, launch: int) -> OutputMonitor | None:
        monitor = self.by_agent.get(agent)
        return monitor if monitor is not None and monitor.launch == launch else None

    def close(self, agent: str) -> None:
        del self.by_agent[agent]

    def mark(self, monitor: OutputMonitor) -> None:
        """Mark that a monitor was read: the report archives a beat of its launch in this turn."""
        self._marked[monitor.agent] = monitor

    def take_marked(self) -> list[OutputMonitor]:
        marked, self._marked = list(self._marked.values()), {}
        return marked


def counted(count: OutputCounts, event: OutputEvent) -> OutputCounts:
    """Return the counts after one more event. Output of the model counts as an answer; the end of a turn does not."""
    if event.retry is not None:
        return replace(count, retries=count.retries + 1)
    answers = (event.phase or event.reply or event.part or event.tool) and not (
        event.error or event.early or event.ended
    )
    if not (answers or event.edited or event.compacted):
        return count
    return replace(
        count,
        edits=count.edits + bool(event.edited),
        compactions=count.compactions + event.compacted,
        answered=count.retries if answers else count.answered,
    )


def _signs_of_turn(events: tuple[OutputEvent, ...]) -> list[OutputEvent]:
    """Return the events of a line that show that the turn has begun. A line that the runtime does not know shows
    nothing, nor does a turn that failed or was interrupted: the conversation may not have been saved."""
    cut = any(event.ending in FAILED or event.ending is Ending.INTERRUPTED for event in events)
    return [] if cut else [event for event in events if not event.early and not event.unknown]


def _is_answer(reply: str) -> bool:
    return not isinstance(parse_reply(reply), OtherReply)
