"""Reads what the live view shows of a run: its status, its latest events, the curve and the attempts. Each update reads
only what is new."""

import time
from collections import deque
from collections.abc import Iterable, Mapping

from attempts.index import history, query
from attempts.index.history import GradedRecord
from attempts.record import Attempt, Kind, Verdict
from coral.cli.ui.curve import AGENT_STYLES
from coral.cli.ui.events import is_step
from coral.reading.curve import times
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.reading.timeline import PUBLISHED, Timeline, end_of, read_figures
from coral.views.curve import BestStep, steps_of
from workspace.layout import Layout
from workspace.notes import Note, latest_synthesis

KEPT = 2000  # events that one can scroll back to
ATTEMPTS = 3000  # the latest, which are drawn as points
BestSoFar = list[tuple[str, int, float]]  # from `query.curve`
LATEST = 1_000_000  # bytes of the timeline, in which these events are
LOOK_AT_NOTES = 10.0  # seconds between two looks for a new conclusion


class RunFollower:
    """Reads the data of a run that the live view draws, again and again. `points`: pairs of the run's clock in seconds
    and the best score from then on, first the seed's if it has one. `attempts`: the latest attempts that have a
    score."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.view = RunView(layout)
        self.events: deque[tuple[int, LenientJson]] = deque(maxlen=KEPT)  # without steps; see `is_step`
        self.all_events: deque[tuple[int, LenientJson]] = deque(maxlen=KEPT)  # numbered as they were read
        self.points: list[tuple[float, float]] = []
        self.attempts: deque[tuple[float, float, str]] = deque(maxlen=ATTEMPTS)  # seconds, score, agent
        self.conclusion: Note | None = None
        self._looked_at_notes = float("-inf")
        self._curve: BestSoFar = []
        self._proofs: list[GradedRecord] = []  # the records of the curve
        self._steps: list[BestStep] = []
        self._is_first = True
        self._read = 0  # events
        self._timeline = Timeline(layout, end_of(layout, LATEST))
        # When each attempt was published, on the run's clock, which stops while nobody supervises.
        self._clocks = read_figures(layout).clocks

    def update(self) -> None:
        earlier = self.view
        self.view = RunView(self.layout)
        if not self.view.status and earlier.status:
            self.view = earlier  # a file that is unreadable for a moment must not blank the screen
        records = [record for record in map(self.view.attempt_or_none, self._read_events()) if record is not None]
        if not self._curve or any(record.verdict is Verdict.NEW_BEST for record in records):
            self._curve = self.view.index.ask(lambda rows: query.curve(rows, self.view.only_agent))
            self._proofs = self.view.index.ask(lambda rows: history.new_bests(rows, self.view.only_agent))
        at = times(self.view, ((number, published) for published, number, _ in self._curve), self._clocks.get)
        self._steps = steps_of(self._curve, self._proofs, at.__getitem__)
        self.points = [(step.at, step.value) for step in self._steps]
        self._add_attempts(records)
        if time.monotonic() - self._looked_at_notes >= LOOK_AT_NOTES:
            self._looked_at_notes = time.monotonic()
            self.conclusion = latest_synthesis(self.layout.shared)

    @property
    def gained(self) -> list[float]:
        """When attempts of agents were proven to be the best, in seconds of the run's clock."""
        seed = None if self.view.seed is None else self.view.seed.number
        return [step.at for step in self._steps if step.number != seed]

    def until_now(self) -> list[tuple[float, float]]:
        """Return the points up to the present, so that a fleet without improvement shows as a flat line."""
        clock, (last, best) = self.view.status.number("clock"), self.points[-1]
        return [*self.points, (clock, best)] if clock is not None and clock > last else self.points

    def styles(self) -> Mapping[str, str]:
        """Return a colour for each of the first agents."""
        names = [agent.text("name") for agent in self.view.status.objects("agents")]
        return dict(zip(names, AGENT_STYLES, strict=False))

    def _read_events(self) -> list[int]:
        """Read the new events; return the numbers of the attempts that were published."""
        published: list[int] = []
        events = self._timeline.new()
        for event in events:
            self._read += 1
            self.all_events.append((self._read, event))
            if not is_step(event):
                self.events.append((self._read, event))
        for event in events:
            number, clock = event.integer("attempt"), event.number("clock")
            if event.text("type") == PUBLISHED and number is not None:
                published.append(number)
                if clock is not None:
                    self._clocks[number] = clock
        return published

    def _add_attempts(self, records: Iterable[Attempt]) -> None:
        """Add the latest attempts from the index at the first call, and later the records that were published since."""
        if self._is_first:
            self._is_first = False
            found = self.view.index.ask(lambda rows: history.graded(rows, self.view.only_agent, ATTEMPTS))
            at = times(self.view, ((record.number, record.published_at) for record in found), self._clocks.get)
            graded = [(at[record.number], record.score, record.agent, record.kind) for record in found]
        else:
            graded = [
                (self._clocks.get(record.number, 0.0), record.score, record.agent, record.kind) for record in records
            ]
        for seconds, score, agent, kind in graded:
            if score is not None and agent and kind in (Kind.REAL, Kind.TUNE):
                self.attempts.append((seconds, score, agent))
