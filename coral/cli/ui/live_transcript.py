"""Shows an agent's conversation in the live view: its last lines, and then those that come, launch after launch."""

from collections import deque
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.text import Text

from coral.cli.commands.transcript import LINES, QUIET, STYLES, end_of_launch, label_of, runtime_of, text_of
from coral.cli.ui.scroll import Position
from coral.errors import CoralError
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.views import format, transcript
from coral.views.transcript import EntryKind, LaunchHistory, LaunchTail, TranscriptEntry

LATEST = 500_000  # bytes of a launch's output
KEPT = 2000  # lines
LONGEST = 4000  # characters of a line
LABEL = 10  # the width of a label
AT_FIRST = 2  # launches: one that has just begun has little to show
ENDED = ("waiting", "parked", "retired")  # phases in which an agent has no process


class LiveTranscript:
    """The conversation of one agent. `update` reads what is new in it; `problem` says why it cannot be read."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.problem = ""  # why it cannot be read
        self._lines: deque[tuple[int, str | None, Text]] = deque(maxlen=KEPT)  # number, label, text
        self._count = 0
        self._launch = 0
        self._tail: LaunchTail | None = None  # None before the first launch, and after the end of one
        self._rows: dict[int, list[Text]] = {}  # by the number of the line
        self._width = 0

    def update(self, view: RunView, events: Iterable[LenientJson]) -> None:
        """Read what is new. `events`: the latest events of the run, which tell why launches began and how they
        ended."""
        try:
            launches = [launch for launch in transcript.launches(view.layout, self.agent) if launch > self._launch]
            history = _history(events, self.agent)
            for launch in launches if self._launch else launches[-AT_FIRST:]:
                self._end(view, history)
                self._begin(view, launch, history)
            if self._tail is not None:
                self._add(self._tail.new(), view, history)
            phases = {row.text("name"): row.text("phase") for row in view.status.objects("agents")}
            if phases.get(self.agent) in ENDED and self._launch in history.endings:
                self._end(view, history)
        except (CoralError, OSError) as error:
            self.problem = f"cannot read it: {error}"

    def rows(self, out: Console, width: int) -> tuple[list[Position], list[Text]]:
        """Return all lines wrapped into rows of this width, and the position of each row."""
        if width != self._width:
            self._rows, self._width = {}, width
        first = self._lines[0][0] if self._lines else 0
        for number in [number for number in self._rows if number < first]:
            del self._rows[number]
        for number, label, text in self._lines:
            if number not in self._rows:
                self._rows[number] = list(_wrapped(label, text, out, width))
        placed = [
            ((number, place), row) for number, _, _ in self._lines for place, row in enumerate(self._rows[number])
        ]
        return [position for position, _ in placed], [row for _, row in placed]

    def _begin(self, view: RunView, launch: int, history: LaunchHistory) -> None:
        reason = history.reasons.get(launch, "")
        self._launch = launch
        self._append(None, Text(f"── launch {launch}{f' · {reason}' if reason else ''} ──", style="dim"))
        runtime = runtime_of(view, self.agent, launch)
        self._tail = LaunchTail(view.layout, self.agent, launch, runtime, LATEST)

    def _end(self, view: RunView, history: LaunchHistory) -> None:
        if self._tail is not None:
            self._add(self._tail.end(), view, history)
        self._tail = None

    def _add(self, entries: Iterable[TranscriptEntry], view: RunView, history: LaunchHistory) -> None:
        for entry in entries:
            if entry.kind is EntryKind.USAGE:  # it may be that of the part that was read alone
                continue
            style = "red" if entry.failed else STYLES.get(entry.kind, "dim" if entry.kind in QUIET else "")
            text = end_of_launch(entry, history, view) if entry.kind is EntryKind.END else text_of(entry)
            for place, line in enumerate(_some(format.clean(text).splitlines() or [""], LINES.get(entry.kind))):
                self._append("" if place else label_of(entry), Text(line[:LONGEST].expandtabs(4), style=style))

    def _append(self, label: str | None, text: Text) -> None:
        self._lines.append((self._count, label, text))
        self._count += 1


def _some(lines: list[str], most: int | None) -> Iterator[str]:
    yield from lines[:most]
    if most is not None and len(lines) > most:
        yield f"… {format.plural(len(lines) - most, 'more line')}"


def _wrapped(label: str | None, text: Text, out: Console, width: int) -> Iterator[Text]:
    """Yield a line as rows: its label stands before the first row, and the others are indented. A title, which has no
    label, is cut instead."""
    if label is None:
        title = text.copy()
        title.truncate(width, overflow="ellipsis")
        yield title
        return
    indent = LABEL if width >= 4 * LABEL else 2
    for place, row in enumerate(text.wrap(out, max(8, width - indent)) or [Text()]):
        yield Text.assemble((f"{'' if place else label:<{indent}}"[:indent], "dim"), row)


def _history(events: Iterable[LenientJson], agent: str) -> LaunchHistory:
    """Return why each launch of the agent in these events began, and how it ended."""
    found = LaunchHistory({}, {})
    for event in events:
        launch = event.integer("launch")
        if launch is None or event.text("agent") != agent:
            continue
        if event.text("type") == "exited":
            found.endings[launch] = event.text("ending", 40)
        elif event.text("type") == "spawned":
            names = ", ".join(event.texts("heartbeats"))
            found.reasons[launch] = f"{event.inner('reason').text('text', 200)}{f': {names}' if names else ''}"
    return found
