"""What an agent's program prints, read as it grows: only what is new, and never a line longer than memory allows."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from attempts.files import open_plain
from coral.fleet.agent_state import OutputCounts, Spent
from coral.fleet.events import Ending, OutputSeen, Used
from coral.runtimes.model import Counted, LaunchSummary, OutputEvent, Runtime
from coral.runtimes.reply_parts import ReplyParts
from coral.runtimes.usage_total import UsageTotal
from coral.supervisor.context import RunContext
from heartbeats.beat import Status
from heartbeats.reply import OtherReply, parse_reply

PIECE = 1 << 20  # bytes read at a time
LONGEST_LINE = 1 << 20
REMIND_SECONDS = 15.0  # how often a sign of life that says nothing new is passed on
STDERR_TAIL = 4000
FAILED = (Ending.LIMIT, Ending.TERMINAL, Ending.CRASHED, Ending.UNKNOWN_SESSION)
QUIET_SECONDS = 30.0  # after so long without a word, somebody is listened to less often
QUIET_PAUSE = 2.0  # seconds
MAX_ANSWERS = 8  # to checkpoints that are told of one look; the last ones


class LineTail:
    """The lines that were added to a file since the last look. Lines that are too long are passed over, and counted in
    `omitted`."""

    def __init__(self, path: Path) -> None:
        self.omitted = 0
        self.place = 0  # where in the file the line ends that was given last
        self._path = path
        self._offset = 0
        self._part = b""
        self._skipping = False

    def lines(self) -> Iterator[bytes]:
        if not self.is_behind:
            return
        try:
            with open_plain(self._path) as file:
                file.seek(self._offset)
                piece = file.read(PIECE)
        except (FileNotFoundError, ValueError):  # nothing yet; or the agent laid something else there: it is silent
            return
        place = self._offset - len(self._part)
        self._offset += len(piece)
        *whole, self._part = (self._part + piece).split(b"\n")
        for line in whole:
            place += len(line) + 1
            if self._skipping:
                self._skipping = False
            else:
                self.place = place
                yield line
        if len(self._part) > LONGEST_LINE:
            self.omitted += not self._skipping
            self._part, self._skipping = b"", True

    def rest(self) -> Iterator[bytes]:
        """A last line without its end: whoever wrote it is gone."""
        part, self._part = self._part, b""
        if part and not self._skipping:
            self.place = self._offset
            yield part

    @property
    def is_behind(self) -> bool:
        try:
            return os.stat(self._path).st_size > self._offset  # noqa: PTH116 - once per agent and tick
        except OSError:
            return False


@dataclass(slots=True)
class OutputMonitor:
    """One launch of an agent, as far as it has been heard. `last_retry`: why its program asked its model again, as it
    said last."""

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
    beat_at: float = 0.0
    listened_at: float = float("-inf")
    output: bool = False
    last_error: str = ""
    last_retry: str = ""
    limit_until: float | None = None
    ending: Ending | None = None
    count: OutputCounts = field(default_factory=OutputCounts)
    _exact: bool = False
    _speech: ReplyParts = field(default_factory=ReplyParts)
    _tally: UsageTotal = field(default_factory=UsageTotal)
    _used: Used | None = None
    _told: OutputSeen | None = field(default=None)
    _told_at: float = 0.0
    _reply: str = ""
    _replies: list[tuple[int, str]] = field(default_factory=list)
    _spoken: int = 0

    def is_due(self, now: float) -> bool:
        """Whether to listen again. To look at those who are silent is most of what an idle fleet costs."""
        return now - self.beat_at < QUIET_SECONDS or now - self.listened_at >= QUIET_PAUSE

    def listen(self, now: float, *, ended: bool = False) -> list[OutputSeen]:
        """Read what is new. Returns an event when it says more than the last one did, or as a reminder, and one for
        each answer to a checkpoint. `now` is the run's clock; `ended` takes an unfinished last line for whole."""
        heard, self.listened_at, self.status = False, now, Status.RUNNING
        for line in self.tail.rest() if ended else self.tail.lines():
            heard = True
            signs = self.runtime.read(line)
            self.output = self.output or _proves(signs)
            for sign in self._speech.join(signs):
                self._take(sign)
                self._hear(sign.reply)
        if heard:
            self.beat_at = now
        if not self.output or (self.session is None and self.runtime.resumes):
            return []
        session = self.session if self.runtime.resumes else None
        event = OutputSeen(agent=self.agent, launch=self.launch, session=session, activity=self.phase, count=self.count)
        replies, self._replies = self._replies, []
        says_more = any(_is_answer(reply) or reply != self._reply for _, reply in replies)
        reminds = heard and now - self._told_at >= REMIND_SECONDS
        if event == self._told and not says_more and not reminds:
            return []
        self._told, self._told_at, self._reply = event, now, replies[-1][1] if replies else self._reply
        return [replace(event, reply=reply, place=place) for place, reply in replies] or [event]

    def _hear(self, reply: str) -> None:
        """Of what was said at one look, the answers count, and the last words. Two replies never have one place."""
        if not reply:
            return
        self._spoken = max(self._spoken + 1, self.tail.place)
        if self._replies and not _is_answer(self._replies[-1][1]):
            del self._replies[-1]
        self._replies = [*self._replies[1 - MAX_ANSWERS :], (self._spoken, reply)]

    def consult(self, state: Path) -> None:
        """Once the launch has ended: take in what it used by the log that its program keeps, if there is one."""
        if self.session and (usage := self.runtime.usage(state, self.session)) is not None:
            self._tally.take(usage)

    def used(self) -> list[Used]:
        """What its program says that it has used, when that is more than was told before."""
        figure = self._tally.figure
        if figure is None:
            return []
        session = (self.session or "") if figure.counted is Counted.SESSION else ""
        spent = Spent(input=figure.input, cached=figure.cached, output=figure.output, money=figure.cost)
        event = Used(agent=self.agent, launch=self.launch, figure=spent, session=session)
        if event == self._used:
            return []
        self._used = event
        return [event]

    def said(self) -> LaunchSummary:
        """Everything that judging the end of the launch needs."""
        return LaunchSummary(
            output=self.output,
            session=self.session or "",
            error=self.last_error,
            stderr=end_of(self.errors),
            limit_until=self.limit_until,
            ending=self.ending,
        )

    def _take(self, sign: OutputEvent) -> None:
        self.session = sign.session or self.session
        self.phase = sign.phase or self.phase
        self.message = sign.message or self.message
        self.progress = sign.progress if sign.phase else self.progress
        self.last_error = sign.error or self.last_error
        self.last_retry = (sign.retry.reason if sign.retry is not None else "") or self.last_retry
        self.ending = sign.ending or self.ending
        self.count = counted(self.count, sign)
        if sign.usage is not None:
            self._tally.take(sign.usage)
        if sign.limit_until is not None and (sign.exact or not self._exact):
            self.limit_until, self._exact = sign.limit_until, sign.exact  # a figure beats a sentence


class OutputMonitors:
    """The monitor of every agent's newest launch: opened when the launch is prepared or taken over, read by the
    gatherer, shown by the report."""

    def __init__(self, run_context: RunContext) -> None:
        self._layout = run_context.layout
        self._roster = run_context.roster
        self.by_agent: dict[str, OutputMonitor] = {}
        self._heard: dict[str, OutputMonitor] = {}

    def open(self, agent: str, launch: int, session: str | None, clock: float) -> OutputMonitor:
        """Read what a launch prints, from its beginning."""
        output, errors = LineTail(self._layout.output(agent, launch)), self._layout.errors(agent, launch)
        runtime = self._roster.runtime(agent)
        monitor = OutputMonitor(agent, launch, runtime, output, errors, session, beat_at=clock)
        self.by_agent[agent] = monitor
        return monitor

    def find(self, agent: str, launch: int) -> OutputMonitor | None:
        monitor = self.by_agent.get(agent)
        return monitor if monitor is not None and monitor.launch == launch else None

    def close(self, agent: str) -> None:
        del self.by_agent[agent]

    def mark(self, monitor: OutputMonitor) -> None:
        """It was listened to: there may be a beat of it to archive."""
        self._heard[monitor.agent] = monitor

    def take_marked(self) -> list[OutputMonitor]:
        marked, self._heard = list(self._heard.values()), {}
        return marked


def counted(count: OutputCounts, sign: OutputEvent) -> OutputCounts:
    """The count with one more sign. Whatever the model says or does is an answer; that a turn ends is none."""
    if sign.retry is not None:
        return replace(count, retries=count.retries + 1)
    answers = (sign.phase or sign.reply or sign.part or sign.tool) and not (sign.error or sign.early or sign.ended)
    if not (answers or sign.edited or sign.compacted):
        return count
    return replace(
        count,
        edits=count.edits + bool(sign.edited),
        compactions=count.compactions + sign.compacted,
        answered=count.retries if answers else count.answered,
    )


def _proves(signs: tuple[OutputEvent, ...]) -> bool:
    """Whether a line shows that the conversation has taken the prompt in. A turn that failed or was
    interrupted may have left nothing, and one whose conversation is given up leaves nothing."""
    cut = any(sign.ending in FAILED or sign.ending is Ending.INTERRUPTED for sign in signs)
    return not cut and not (signs and all(sign.early for sign in signs))


def _is_answer(reply: str) -> bool:
    return not isinstance(parse_reply(reply), OtherReply)


def end_of(path: Path) -> str:
    """The last words of a file."""
    try:
        with open_plain(path) as file:
            file.seek(max(os.fstat(file.fileno()).st_size - STDERR_TAIL, 0))
            return file.read(STDERR_TAIL).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
