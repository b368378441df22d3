"""`coral runs`: the runs in the nearest folder of runs, newest first."""

from __future__ import annotations

import argparse
import json

from rich.text import Text

from coral.cli.parser import count
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.console import console, tone
from coral.cli.ui.table import table
from coral.errors import CoralError
from coral.views import format
from workspace.layout import Layout, runs_under


def add_arguments(parser: argparse.ArgumentParser) -> None:
    near = "a folder of runs; otherwise the nearest one named `runs`"
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help=near)
    parser.add_argument("--task", metavar="NAME", help="only the runs of this task")
    parser.add_argument("-n", type=count, default=20, metavar="N", help="at most this many (default 20); 0 is all")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    runs = [RunView(layout) for layout in _found(args)[: args.n or None]]
    if args.json:
        print(json.dumps([_data(reading) for reading in runs], indent=1))
        return 0
    columns = ("run", "task*", "state", ">agents?", ">attempts?", ".best", "last word?")
    out = console()
    out.print(table(columns, [_row(reading) for reading in runs], out.width))
    return 0


def _found(args: argparse.Namespace) -> list[Layout]:
    folder = run_lookup.here() / args.folder if args.folder else None
    runs = runs_under(folder) if folder else run_lookup.from_here(args.task)
    if args.task:
        runs = [run for run in runs if run.root.parent.name == args.task]
    if not runs:
        of = f" of the task {args.task!r}" if args.task else ""
        raise CoralError(
            f"cannot find any runs{of} in or above {folder or run_lookup.here()}",
            "start one with `coral start TASK`, or name a folder of runs: `coral runs FOLDER`",
        )
    return runs


def _data(reading: RunView) -> dict[str, object]:
    best = reading.status.inner("best")
    return {
        "run": reading.name,
        "task": reading.task,
        "folder": str(reading.layout.root),
        "state": reading.state,
        "reason": reading.status.data.get("reason"),
        "agents": len(reading.agents()),
        "attempts": reading.status.integer("attempts"),
        "best": best.data or None,
        "wall": reading.status.data.get("wall"),
    }


def _row(reading: RunView) -> list[str | Text]:
    attempts = reading.status.integer("attempts")
    return [
        reading.name,
        reading.task,
        tone(reading.state),
        str(len(reading.agents())),
        "" if attempts is None else str(attempts),
        format.score(reading.status.inner("best").number("score")),
        format.ago(reading.status.data.get("wall")),
    ]
