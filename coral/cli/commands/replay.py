"""`coral replay`: decides all events of the journal again and compares the decisions; with `--at`, shows the fleet as
it was."""

import argparse
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from rich.console import Console

from coral import __version__
from coral.cli import EXIT_USER_ERROR
from coral.cli.commands.status import print_heading
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.cli.ui.agents_table import agents_table
from coral.cli.ui.progress import steps
from coral.cli.ui.table import console, dim
from coral.codec import encode
from coral.errors import CoralError
from coral.fleet.agent_state import LIVE
from coral.fleet.policy import slots_of
from coral.fleet.rules import Rules
from coral.journal import RecoveredState, read_lines, segments
from coral.journal.changes import encode_fleet
from coral.journal.replay import Difference, Replay, difference_data, fold_until, replay
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.fleet_view import agents_of, budgets_of, grading_of, scores_of, seed_score, state_of, used_by
from coral.views.holdout import Compared
from coral.views.prompt_context import budget
from heartbeats.archive import beats_in
from heartbeats.beat import to_dict
from workspace.layout import Layout, plain

SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
UNITS = (86400.0, 3600.0, 60.0, 1.0)
FIRST_PROGRESS, PROGRESS_EVERY = 1.0, 5.0  # seconds


def add_arguments(parser: Parser) -> None:
    parser.exit_codes = {0: "every decision is the same", EXIT_USER_ERROR: "one differs"}
    parser.add_argument("name", nargs="?", metavar="RUN", help="as --run")
    run_lookup.add_arguments(parser)
    at = "a time of day (2030-01-02T15:04), or how long the run had gone on (1h30m)"
    parser.add_argument("--at", metavar="TIME", help=at)
    parser.add_argument("--beats", metavar="AGENT", help="play the archived signs of life of an agent instead")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    send_request.as_operator("replay a run")
    args.run = args.run or args.name
    layout = run_lookup.run_of(args)
    if args.beats is not None:
        return _play_beats(layout, args.beats, args.json)
    if not segments(layout.journal):
        raise CoralError(f"cannot replay {layout.root.name}: it has no journal", "nobody has supervised it yet")
    if args.at is not None:
        return _show_past(layout, args.at, args.json)
    with steps() as say:
        found = replay(layout.journal, _progress(say))
    if args.json:
        first = None if found.first is None else difference_data(found.first)
        counts = {"same": found.same, "different": found.different, "events": found.events}
        print_json({**counts, "versions": found.versions, "heads": found.heads, "first": first})
    else:
        _print_comparison(console(), found)
    return 0 if found.agrees else 1


def _play_beats(layout: Layout, agent: str, as_json: bool) -> int:
    """Print each beat with its time since the first one. A silence longer than the ttl gets a line of its own."""
    try:
        beats = list(beats_in(layout.beats(plain(agent))))
    except ValueError:  # no agent has such a name
        beats = []
    if not beats:
        raise CoralError(f"cannot play the beats of {agent}: there are none", "`coral status` names the agents")
    if as_json:
        return print_json([to_dict(beat) for beat in beats])
    out, first, last = console(), None, None
    for beat in beats:
        at = format.age(beat.timestamp, 0.0)
        at = None if at is None else -at
        first = at if first is None else first
        since = "" if at is None or first is None else format.run_clock(at - first)
        is_launch = beat.launch > 0
        if is_launch and at is not None and last is not None and at - last > beat.ttl:
            out.print(dim(f"{'':>9}  nothing for {format.duration(at - last)}"))
        share = "" if beat.progress is None else f" {beat.progress:.0%}"
        words = " ".join(part for part in (beat.phase + share, beat.message) if part)
        whose = f"launch {beat.launch}" if is_launch else beat.task
        out.print(f"{since:>9}  {whose:<10}  {beat.status:<9}  {words}", overflow="ellipsis", no_wrap=True)
        last = at if at is not None and is_launch else last
    return 0


def _progress(say: Callable[[str], None]) -> Callable[[Replay], None]:
    """Return a function that says how many decisions were compared: first after FIRST_PROGRESS seconds, then every
    PROGRESS_EVERY seconds."""
    due = time.monotonic() + FIRST_PROGRESS

    def report(found: Replay) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + PROGRESS_EVERY
            say(f"{found.same + found.different:,} decisions")

    return report


def _print_comparison(out: Console, found: Replay) -> None:
    count = format.plural(found.same + found.different, "decision")
    if found.first is None:
        out.print(f"{count} on {format.plural(found.events, 'event')}: all the same")
    else:
        first, now = found.first, found.first.now
        place = f"{first.file}, line {first.line}, at {now.wall_time} ({format.duration(now.run_time)})"
        out.print(f"{found.different} of {count} differ, the first in {place}")
        _print_difference(out, first)
    for head in found.heads:
        out.print(head)
    if not found.agrees and found.versions != [__version__]:
        out.print(f"written by version {', '.join(found.versions)}; this is {__version__}, which may decide otherwise")


def _print_difference(out: Console, first: Difference) -> None:
    for title, items in (("on", first.events), ("recorded", first.recorded), ("again", first.again)):
        for place, item in enumerate(items or [None]):
            text = "nothing" if item is None else _one_line(encode(item))
            out.print(f"  {title if place == 0 else '':<10}{text}", overflow="ellipsis", no_wrap=True)
    if first.records:
        out.print(f"  {'not alike':<10}{', '.join(first.records)}")


def _one_line(plain: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name}={format.line(json.dumps(value))}" for name, value in plain.items() if name != "is")
    return f"{plain['is']}({named})"


# The fleet as it was.


@dataclass(frozen=True)
class PastRun(RunView):
    """A run at an earlier time. Its status is made from the journal up to then; of status.json, which shows the
    present, only the task's name is read."""

    memory: RecoveredState

    @cached_property
    def status(self) -> LenientJson:
        return LenientJson(past_status(self.memory))

    @property
    def task(self) -> str:
        return RunView(self.layout).task

    @property
    def state(self) -> str:
        return self.status.text("state")

    @property
    def holdouts(self) -> list[Compared]:
        return []

    @property
    def lateness(self) -> float:
        return 0.0  # it is shown as it was, however long ago that is


def _show_past(layout: Layout, at: str, as_json: bool) -> int:
    memory = fold_until(layout.journal, is_after(at))
    if memory is None:
        began = next(read_lines(layout.journal), {}).get("wall", "never")
        raise CoralError(f"cannot show {layout.root.name} at {at}: it began later", f"its journal begins at {began}")
    if as_json:
        return print_json({**past_status(memory), "fleet": encode_fleet(memory.fleet)})
    out, view = console(), PastRun(layout, memory)
    print_heading(out, view)
    out.print(f"as it was at {memory.wall}")
    if memory.fleet.agents:
        out.print()
        out.print(agents_table(view.status, 0.0, out.width))
    return 0


def past_status(memory: RecoveredState) -> dict[str, Any]:
    """Return what `status.json` held then, as far as it follows from the state of the fleet."""
    fleet, rules = memory.fleet, memory.rules or Rules()
    return {
        "run": fleet.run.id,
        "direction": rules.scoring.direction.value,
        **state_of(fleet.run),
        "wall": memory.wall,
        "clock": round(memory.clock, 3),
        "epoch": fleet.run.epoch,
        "baseline": seed_score(fleet, None),
        "baseline_number": None if fleet.standing.seed is None else fleet.standing.seed.number,
        **scores_of(fleet, rules),
        "attempts": fleet.run.progress.evals,
        "grading": {"slots": slots_of(fleet.run, rules), **grading_of(fleet, memory.clock)},
        **used_by(fleet, rules),
        "budget": budget(rules, fleet, memory.clock),
        "budgets": budgets_of(fleet, rules, memory.clock),
        "agents": [_with_beat(agent, memory) for agent in agents_of(fleet, memory.clock, rules.scoring)],
    }


def _with_beat(view: dict[str, Any], memory: RecoveredState) -> dict[str, Any]:
    """Add the agent's last sign of life that is in the journal."""
    agent = memory.fleet.agents[view["name"]]
    age = round(memory.clock - agent.last_output_at, 1)
    beat = {"phase": agent.activity, "message": "", "age": age} if agent.phase in LIVE and agent.has_output else None
    return {**view, "beat": beat}


def is_after(at: str) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that says whether a line of the journal is later than `at`: `1h30m` of the run's clock, or an
    ISO time."""
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
