"""`coral replay`: decide again everything that was decided, and compare; with `--at`, show the fleet as it was."""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from rich.console import Console

from coral import __version__
from coral.cli.commands import replay_fleet
from coral.cli.run_data import run_lookup, send_request
from coral.cli.ui import format
from coral.cli.ui.console import console
from coral.cli.ui.progress import Steps
from coral.codec import encode
from coral.errors import CoralError
from coral.journal import read_lines, segments
from coral.journal.replay import Difference, Replay, fold_until, plain_of, replay
from workspace.layout import Layout

SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
UNITS = (86400.0, 3600.0, 60.0, 1.0)
AFTER, AGAIN = 1.0, 5.0  # seconds until the first word on how far it is, and between two


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="RUN", help="as --run")
    run_lookup.add_arguments(parser)
    parser.add_argument(
        "--at", metavar="TIME", help="a time of day (2030-01-02T15:04), or how long the run had gone on (1h30m)"
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    send_request.as_operator("replay a run")
    args.run = args.run or args.name
    layout = run_lookup.run_of(args)
    if not segments(layout.journal):
        raise CoralError(f"cannot replay {layout.root.name}: it has no journal", "nobody has supervised it yet")
    if args.at is not None:
        return _show(layout, args.at, args.json)
    with Steps() as steps:
        found = replay(layout.journal, _teller(steps))
    if args.json:
        first = None if found.first is None else plain_of(found.first)
        counts = {"same": found.same, "different": found.different, "events": found.events}
        print(json.dumps({**counts, "versions": found.versions, "heads": found.heads, "first": first}, indent=1))
    else:
        _tell(console(), found)
    return 0 if found.agrees else 1


def _teller(steps: Steps) -> Callable[[Replay], None]:
    said = time.monotonic() + AFTER - AGAIN

    def tell(found: Replay) -> None:
        nonlocal said
        if time.monotonic() >= said + AGAIN:
            said = time.monotonic()
            steps.say(f"{found.same + found.different:,} decisions")

    return tell


def _tell(out: Console, found: Replay) -> None:
    count = format.plural(found.same + found.different, "decision")
    if not found.different:
        out.print(f"{count} on {format.plural(found.events, 'event')}: the same again")
    else:
        out.print(f"{found.different} of {count} come out otherwise, the first in {_place(found.first)}")
        _tell_first(out, found.first)
    for head in found.heads:
        out.print(head)
    if not found.agrees and found.versions != [__version__]:
        out.print(f"written by version {', '.join(found.versions)}; this is {__version__}, which may decide otherwise")


def _place(first: Difference | None) -> str:
    assert first is not None
    return f"{first.file}, line {first.line}, at {first.now.wall_time} ({format.span(first.now.run_time)})"


def _tell_first(out: Console, first: Difference | None) -> None:
    assert first is not None
    for title, items in (("on", first.events), ("recorded", first.recorded), ("again", first.again)):
        for place, item in enumerate(items or [None]):
            text = "nothing" if item is None else _one_line(encode(item))
            out.print(f"  {title if place == 0 else '':<10}{text}", overflow="ellipsis", no_wrap=True)
    if first.records:
        out.print(f"  {'not alike':<10}{', '.join(first.records)}")


def _one_line(plain: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name}={format.line(json.dumps(held))}" for name, held in plain.items() if name != "is")
    return f"{plain['is']}({named})"


def _show(layout: Layout, at: str, as_json: bool) -> int:
    memory = fold_until(layout.journal, past_of(at))
    if memory is None:
        began = next(read_lines(layout.journal), {}).get("wall", "never")
        raise CoralError(f"cannot show {layout.root.name} at {at}: it began later", f"its journal begins at {began}")
    if as_json:
        print(json.dumps(replay_fleet.plain(memory), indent=1))
    else:
        replay_fleet.show(console(), layout, memory)
    return 0


def past_of(at: str) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a line of the journal is later than a time: `1h30m` of the run's clock, or an ISO time."""
    found = SPAN.fullmatch(at.strip())
    if found and any(found.groups()):
        end = sum(float(part or 0) * unit for part, unit in zip(found.groups(), UNITS, strict=True))
        return lambda line: line.get("at", 0.0) > end
    try:
        moment = datetime.fromisoformat(at.strip()).astimezone()
    except (ValueError, OverflowError):
        hint = "give a time of day, 2030-01-02T15:04, or how long the run had gone on, 1h30m"
        raise CoralError(f"cannot read {at!r} as a time", hint) from None
    return lambda line: "wall" in line and _moment(line["wall"]) > moment


def _moment(wall: str) -> datetime:
    try:
        return datetime.fromisoformat(wall).astimezone()
    except ValueError:
        raise CoralError(f"cannot tell when {wall!r} is", "ask by how long the run had gone on: --at 1h30m") from None
