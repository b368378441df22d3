"""Shows a run live: the view is drawn twice a second and at each key. If standard output is no terminal, each event is
printed as a line."""

import sys
import time
from collections.abc import Callable

from rich.console import Console, Group

from coral.cli.ui.events import event_line, is_step
from coral.cli.ui.live_frame import frame
from coral.cli.ui.live_keys import Key
from coral.cli.ui.live_requests import LiveRequests
from coral.cli.ui.live_state import Showing, ViewState
from coral.cli.ui.live_transcript import LiveTranscript
from coral.cli.ui.run_follower import RunFollower
from coral.cli.ui.table import console
from coral.cli.ui.terminal_screen import TerminalScreen, full_screen
from coral.fleet.reasons import ReasonKind
from coral.reading.timeline import Timeline
from heartbeats.interval import Watcher
from workspace.layout import Layout

PERIOD = 0.5
LOOK_FOR_ANSWER = 0.05  # seconds between two looks for an answer, while a request waits for one
NOTICE = 20.0  # seconds for which an answer is shown, unless a key is pressed


class LiveView:
    """A run, what is shown of it, and what each key does."""

    def __init__(self, layout: Layout, hint: str, *, verbose: bool) -> None:
        self.watch = RunFollower(layout)
        self.state = ViewState(verbose=verbose)
        self.requests = LiveRequests(layout)
        self._hint = hint
        self._conversation: LiveTranscript | None = None
        self._notice_at = 0.0

    def update(self) -> None:
        """Read what has changed in the run."""
        self.watch.update()
        agents = self.watch.view.status.objects("agents")
        paused = [row.text("name") for row in agents if row.inner("reason").text("kind") == ReasonKind.PAUSED]
        self.state.know([row.text("name") for row in agents], paused)
        if not self.requests.waiting and time.monotonic() - self._notice_at > NOTICE:
            self.state.say("")
        self._take_answers()
        self._read_conversation()

    def press(self, keys: list[Key]) -> None:
        for key in keys:
            self._notice_at = time.monotonic()
            request = self.state.press(key)
            if request is not None:
                self.requests.send(request)
        self._take_answers()
        if keys and (self._conversation is None or self._conversation.agent != self.state.target):
            self._read_conversation()

    def drawn(self, out: Console) -> Group:
        return frame(self.watch, out, self._hint, self.state, self._conversation)

    def _take_answers(self) -> None:
        for answer in self.requests.answers():
            self._notice_at = time.monotonic()
            self.state.say(answer.text, refused=answer.refused)

    def _read_conversation(self) -> None:
        if self.state.showing is not Showing.TRANSCRIPT:
            return
        if self._conversation is None or self._conversation.agent != self.state.target:
            self._conversation = LiveTranscript(self.state.target)
        self._conversation.update(self.watch.view, [event for _, event in self.watch.all_events])


def follow(
    layout: Layout,
    over: Callable[[], bool],
    *,
    hint: str,
    plain: bool = False,
    verbose: bool = False,
    since: int = 0,
) -> None:
    """Show the run until `over()` is true, and then its last state once more. `hint`: the text below the view. `plain`:
    print lines even on a terminal. For lines, `since` is the byte of the timeline at which they begin, and `verbose`
    shows every step."""
    watcher, out = Watcher(layout.supervisor_beats), console()
    if plain or not sys.stdout.isatty() or out.is_dumb_terminal:
        _print_events(Timeline(layout, since), over, watcher, verbose=verbose)
        return
    view = LiveView(layout, hint, verbose=verbose)
    with full_screen(out) as screen:
        while True:
            is_last = over()
            watcher.touch()
            view.update()
            view.state.has_keyboard = screen.has_keyboard
            screen.draw(view.drawn(out))
            if is_last:
                return
            _obey(view, screen, out, time.monotonic() + PERIOD)


def _obey(view: LiveView, screen: TerminalScreen, out: Console, until: float) -> None:
    """Handle keys until `until`, when the run is to be read again; draw the effect of each at once."""
    while (left := until - time.monotonic()) > 0:
        waits = view.requests.waiting > 0
        keys = screen.pressed(min(left, LOOK_FOR_ANSWER) if waits else left)
        view.press(keys)
        if keys or view.requests.waiting == 0 < waits:
            screen.draw(view.drawn(out))


def _print_events(timeline: Timeline, over: Callable[[], bool], watcher: Watcher, *, verbose: bool) -> None:
    while True:
        is_last = over()
        watcher.touch()
        for event in timeline.new():
            if verbose or not is_step(event):
                print(event_line(event, verbose=verbose).plain, flush=True)
        if is_last:
            return
        time.sleep(PERIOD)
