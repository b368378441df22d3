"""`coral watch`: shows the beats of long work that uses `heartbeats.Pulse`, in a run or anywhere else."""

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from coral.cli import EXIT_PENDING, EXIT_USER_ERROR
from coral.cli.parser import Parser, finite, print_json
from coral.cli.run_data.pulse_board import PulseBoard, WatchedPulse
from coral.cli.run_data.pulses import open_source
from coral.cli.ui.live_keys import Key
from coral.cli.ui.pulses import pulse_line, pulses_table
from coral.cli.ui.table import console, dim
from coral.cli.ui.terminal_screen import full_screen
from heartbeats.beat import Status

EXIT_NOT_ALL = 4
PERIOD = 0.25  # seconds between two looks
KEYS = "j and k choose · c cancels · q leaves"
DOWN, UP = ("j", "down"), ("k", "up")


def add_arguments(parser: Parser) -> None:
    about = "the file that a Pulse writes, or a socket (*.sock) to listen on"
    parser.add_argument("places", nargs="+", type=Path, metavar="FILE|SOCKET", help=about)
    parser.add_argument("--timeout", type=finite, metavar="S", help="look for S seconds at most (default: to the end)")
    parser.add_argument("--stay", action="store_true", help="go on when all have ended, for those that come later")
    parser.add_argument("--plain", action="store_true", help="lines instead of a live board")
    parser.add_argument("--json", action="store_true", help="for programs: at the end, {pulses}")
    parser.exit_codes = {
        0: "all have succeeded",
        EXIT_USER_ERROR: "refused",
        EXIT_PENDING: "not all have ended, or none has begun",
        EXIT_NOT_ALL: "one has failed, was cancelled or is dead",
    }


def run(args: argparse.Namespace) -> int:
    deadline = float("inf") if args.timeout is None else time.monotonic() + args.timeout
    with ExitStack() as stack:
        board = PulseBoard([])
        for place in dict.fromkeys(path.absolute() for path in args.places):
            board.sources.append(open_source(place))
            stack.callback(board.sources[-1].close)

        def is_over() -> bool:
            now = time.monotonic()
            return now >= deadline or (not args.stay and board.all_ended(now))

        if args.json:
            _follow(board, is_over, lines=False)
            print_json({"pulses": list(board.data(time.monotonic()))})
        elif args.plain or not sys.stdout.isatty():
            _follow(board, is_over, lines=True)
        else:
            _Screen(board, is_over).show()
        return _exit_code(board)


def _exit_code(board: PulseBoard) -> int:
    now = time.monotonic()
    if not board.all_ended(now):
        return EXIT_PENDING
    return 0 if all(state == Status.SUCCESS for state in board.states(now)) else EXIT_NOT_ALL


def _follow(board: PulseBoard, is_over: Callable[[], bool], *, lines: bool) -> None:
    """Read beats until `is_over()`. With `lines`, print a line for each change of a status or a phase."""
    states: dict[tuple[int, str], str] = {}
    while True:
        now = time.monotonic()
        changes = [(pulse, pulse.heard_at) for pulse in board.update(now)]  # (pulse, when its beat was heard)
        for pulse, at in [*changes, *((pulse, now) for pulse in board.pulses.values())]:
            state = f"{pulse.state(at)} {pulse.beat.phase}"
            if lines and states.get(pulse.key) != state:
                print(pulse_line(pulse, at).plain, flush=True)
            states[pulse.key] = state
        if is_over():
            return
        time.sleep(PERIOD)


@dataclass(slots=True)
class _Screen:
    """The live board; one of its lines is chosen."""

    board: PulseBoard
    is_over: Callable[[], bool]
    chosen: int = 0
    asked: tuple[int, str] | None = None  # the key of the pulse that a second `c` cancels
    note: str = ""
    left: bool = False

    def show(self) -> None:
        out = console()
        with full_screen(out) as screen:
            while True:
                now = time.monotonic()
                self.board.update(now)
                screen.draw(pulses_table(self.board, now, out, self.chosen, self.note or KEYS))
                if self.left or self.is_over():
                    break
                self._obey(screen.pressed(PERIOD))
        out.print(pulses_table(self.board, time.monotonic(), out, None, ""))
        if not self.board.pulses:
            out.print(dim("no beats yet"))

    def _obey(self, keys: list[Key]) -> None:
        for key in keys:
            self.left = self.left or key.name == "q"
            if self.board.pulses:
                self._choose(key.name, list(self.board.pulses.values()))

    def _choose(self, key: str, pulses: list[WatchedPulse]) -> None:
        """Move the choice, or cancel the chosen pulse at the second `c`."""
        step = (key in DOWN) - (key in UP)
        self.chosen = min(max(self.chosen + step, 0), len(pulses) - 1)
        pulse, asked = pulses[self.chosen], self.asked
        self.asked, self.note = None, ""
        if key == "c" and not pulse.beat.is_over:
            if asked == pulse.key:
                self.note = self.board.cancel(pulse)
            else:
                self.asked, self.note = pulse.key, f"press c once more to cancel {pulse.beat.task}"
