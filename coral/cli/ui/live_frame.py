"""Draws one picture of a run: first whether it makes progress (curve, new bests, the agents' conclusions, budgets),
then the agents, then the latest events or the conversation of one agent."""

from collections.abc import Sequence
from itertools import islice

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.text import Text

from coral.cli.commands.status import heading, summary_lines, warnings
from coral.cli.ui.agents_table import agents_table
from coral.cli.ui.budgets import bars
from coral.cli.ui.curve import BestLine, Dot, draw
from coral.cli.ui.events import event_line
from coral.cli.ui.live_state import KEYS, MessageLine, Showing, ViewState, named
from coral.cli.ui.live_transcript import LiveTranscript
from coral.cli.ui.run_follower import RunFollower
from coral.cli.ui.table import Table, dim
from coral.reading.budgets import per_hour
from coral.views import format
from coral.views.curve import HOUR
from coral.views.format import duration

CURVE = 7  # lines
WIDEST = 110
NARROW = 60  # columns, below which events stand without columns of their own
BESIDE_TRANSCRIPT = 6  # agents that are shown above a conversation
SMALL = 30  # rows of a screen, below which the heading is short while somebody reads
NOTICE = 3  # rows
OF_EVENTS = ("? keys", "j k choose", "t transcript", "m tell", "p pause", "PgUp scroll", "v every step")
OF_TRANSCRIPT = ("Esc back", "? keys", "j k choose", "m tell", "p pause", "PgUp scroll")


def frame(
    watch: RunFollower,
    out: Console,
    hint: str,
    state: ViewState | None = None,
    conversation: LiveTranscript | None = None,
) -> Group:
    """Return a picture that fills the screen. What does not fit is left out: the oldest events first, then the curve,
    then agents. `hint`: how to leave the view."""
    state = state or ViewState()
    width, height = out.size
    below = [*_answer(state, out, width), _footer(state, hint, width)]
    free = height - len(below)
    if state.lists_keys:
        body = _keys()
    else:
        body = _body(watch, out, state, conversation, free)
    return Group(_Cropped(body, free), *below)


def _body(
    watch: RunFollower, out: Console, state: ViewState, conversation: LiveTranscript | None, free: int
) -> list[Text | Table]:
    width, talks = out.width, state.showing is Showing.TRANSCRIPT and conversation is not None
    reads = talks or state.events.keep is not None  # a reader needs the space
    top = [*_top(watch, width), *warnings(watch.view)]
    top = [*(top[:2] if reads and free < SMALL else top), Text("")]
    parts: list[Text | Table] = [_fit(line) for line in top[: max(1, free - 5)]]
    free -= len(parts)
    table, rows = _agents(watch, state, free, width, talks=talks)
    free -= rows
    if not reads and free >= CURVE + 4 and watch.points:
        parts += [*curve(watch, min(width - 2, WIDEST), CURVE), Text("")]
        free -= CURVE + 2
    parts.append(table)
    if free > 2:
        parts.append(Text(""))
        shown = (
            _talk(conversation, out, state, free - 1)
            if talks and conversation
            else _events(watch, state, width, free - 1)
        )
        parts += shown
    return parts


def _agents(watch: RunFollower, state: ViewState, free: int, width: int, *, talks: bool) -> tuple[Table, int]:
    """Return a table of as many agents as fit, among them the chosen one; and the number of its rows."""
    names = [agent.text("name") for agent in watch.view.status.objects("agents")]
    count = len(names)
    if talks:
        shown = min(count, BESIDE_TRANSCRIPT, max(1, free // 3))
    else:
        shown = min(count, max(1, free - 4 if free < CURVE + 12 else free - CURVE - 8))
    place = names.index(state.chosen) if state.chosen in names else 0
    first = min(max(0, place - shown + 1), count - shown)
    view, styles = watch.view, watch.styles()
    table = agents_table(view.status, view.lateness, width, shown, styles, first=first, chosen=state.chosen)
    return table, shown + 1 + (count > shown)


def _events(watch: RunFollower, state: ViewState, width: int, height: int) -> list[Text]:
    """Return the events in the window, and a line about how many are newer."""
    events = watch.all_events if state.verbose else watch.events
    first, end = state.events.window([(number, 0) for number, _ in events], height)
    styles, narrow = watch.styles(), width < NARROW
    rows = [
        _fit(event_line(event, verbose=state.verbose, styles=styles, narrow=narrow))
        for _, event in islice(events, first, end)
    ]
    return [*rows, *_newer(len(events) - end, "event")]


def _talk(conversation: LiveTranscript, out: Console, state: ViewState, height: int) -> list[Text]:
    """Return a title with the agent's name, the rows of its conversation in the window, and a line about how many are
    newer."""
    positions, rows = conversation.rows(out, out.width)
    first, end = state.transcript.window(positions, height - 1)
    title = _fit(Text(f"the conversation of {conversation.agent}", style="bold"))
    empty = [dim(conversation.problem or "nothing yet: it has not been launched")]
    return [title, *(_fit(row) for row in (rows[first:end] or empty)), *_newer(len(rows) - end, "line")]


def _newer(count: int, noun: str) -> list[Text]:
    return [_fit(Text(f"↓ {format.plural(count, f'newer {noun}')}: End shows them", style="yellow"))] if count else []


def _answer(state: ViewState, out: Console, width: int) -> list[Text]:
    """Return the message that is being typed, or the answer to the last key."""
    if state.line is not None:
        return [_message(state.line, width)]
    if not state.notice:
        return []
    style = "yellow" if state.refused else "green"
    rows = list(Text(state.notice, style=style).wrap(out, max(8, width)))
    return [_fit(row) for row in rows[:NOTICE]]


def _message(line: MessageLine, width: int) -> Text:
    """Return the typed line, scrolled so that its cursor is visible."""
    label = f"tell {named(line.to)}: "
    before, at, after = line.text[: line.cursor], line.text[line.cursor : line.cursor + 1], line.text[line.cursor + 1 :]
    free = max(4, width - len(label) - 2)
    while Text(before).cell_len > free:
        before = before[1:]
    text = Text.assemble((label, "bold"), before, (at or " ", "reverse"), after)
    return _fit(text)


def _footer(state: ViewState, hint: str, width: int) -> Text:
    """Return the line of the keys that matter now, as many as fit before the hint how to leave the view."""
    if state.line is not None:
        return _fit(dim("Enter sends · Esc leaves it"))
    if state.lists_keys:
        return _fit(dim(f"any key: back · {hint}"))
    if not state.has_keyboard:
        return _fit(dim(hint))
    keys = list(OF_TRANSCRIPT if state.showing is Showing.TRANSCRIPT else OF_EVENTS)
    shown = " · ".join([*keys, hint])
    while len(keys) > 1 and len(shown) > width:
        keys.pop()
        shown = " · ".join([*keys, hint])
    return _fit(dim(shown))


def _keys() -> list[Text | Table]:
    longest = max(len(keys) for keys, _ in KEYS)
    return [Text("Keys", style="bold"), *(_fit(Text(f"{keys:<{longest}}  {what}")) for keys, what in KEYS)]


class _Cropped:
    """Draws its parts as exactly `height` lines, so that what follows is at the bottom of the screen."""

    def __init__(self, parts: Sequence[Text | Table], height: int) -> None:
        self._parts, self._height = parts, max(0, height)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(Group(*self._parts), options.update(height=None), pad=False)
        for line in [*lines[: self._height], *([[]] * (self._height - len(lines)))]:
            yield from line
            yield Segment.line()


def _top(watch: RunFollower, width: int) -> list[Text]:
    """Return the heading of the run, its progress, and its budgets, as many in a line as fit."""
    view = watch.view
    budgets = bars(view.status, view.lateness)
    lines = [*(summary_lines(view) if budgets else heading(view)), progress(watch)]
    amounts: list[Text] = []
    for bar in budgets:
        if amounts and amounts[-1].cell_len + bar.cell_len + 3 <= width:
            amounts[-1] = Text.assemble(amounts[-1], "   ", bar)
        else:
            amounts.append(Text.assemble("budget ", bar))
    # A target or a plateau is no amount: it is only in `lines`, after those of the amounts.
    others = view.status.inner("budget").texts("lines")[len(budgets) :] if budgets else []
    return [*lines, *amounts, *([Text("budget " + " · ".join(others))] if others else [])]


def progress(watch: RunFollower) -> Text:
    """Return whether the run makes progress: new bests in the last hour, what it costs an hour, the latest
    conclusion."""
    view = watch.view
    clock = (view.status.number("clock") or 0.0) + view.lateness
    gained = watch.gained
    recent = sum(at > clock - HOUR for at in gained)
    parts = [Text(f"{format.plural(recent, 'new best')} in the last hour", style="green" if recent else "yellow")]
    if gained:
        parts.append(Text(f"the last {duration(max(clock - gained[-1], 0.0), units=1)} ago"))
    if cost := per_hour(view.status, view.lateness):
        parts.append(Text(cost))
    if watch.conclusion is not None:
        note = watch.conclusion
        parts.append(Text.assemble("concluded ", dim(f"{format.ago(note.created)}: "), note.title))
    return Text(" · ").join(parts)


def _fit(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def curve(watch: RunFollower, width: int, height: int) -> list[Text]:
    """Return the chart of the best so far up to now, with the attempts in the colours of their agents."""
    points, styles = watch.until_now(), watch.styles()
    dots = [Dot(at, score, styles.get(agent, "bright_black")) for at, score, agent in watch.attempts]
    end = points[-1][0]
    return draw([BestLine(points)], dots, width, height, end, duration(end))
