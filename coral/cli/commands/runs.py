"""`coral runs`: lists the runs in the nearest folder of runs, newest first."""

import argparse
from contextlib import closing
from typing import Any

from rich.text import Text

from coral.cli.parser import count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.table import print_table, tone
from coral.errors import CoralError
from coral.reading.run_folder import here, is_of
from coral.reading.run_view import RunView, is_seed
from coral.views import format
from workspace.layout import Layout, runs_under


def add_arguments(parser: argparse.ArgumentParser) -> None:
    near = "a folder of runs; otherwise the nearest one named `runs`"
    parser.add_argument("folder", nargs="?", metavar="FOLDER", help=near)
    parser.add_argument("--task", metavar="NAME", help="only the runs of this task")
    parser.add_argument("-n", type=count, default=20, metavar="N", help="at most this many (default 20); 0 is all")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    columns = ("run", "task*", "state", ">agents?", ">attempts?", ".best", "last beat?")
    rows: list[Any] = []
    for layout in _found(args)[: args.n or None]:
        with closing(RunView(layout)) as view:  # a thousand open indexes are more files than a process may have
            rows.append(_data(view) if args.json else _row(view))
    if args.json:
        return print_json(rows)
    print_table(columns, rows)
    return 0


def _found(args: argparse.Namespace) -> list[Layout]:
    folder = here() / args.folder if args.folder else None
    runs = runs_under(folder) if folder else run_lookup.from_here(args.task)
    if args.task:
        runs = [run for run in runs if is_of(run, args.task)]
    if not runs:
        of = f" of the task {args.task!r}" if args.task else ""
        hint = "start one with `coral start TASK`, or name a folder of runs: `coral runs FOLDER`"
        raise CoralError(f"cannot find any runs{of} in or above {folder or here()}", hint)
    return runs


def _data(view: RunView) -> dict[str, object]:
    best, lead = view.best_and_lead
    return {
        "run": view.name,
        "task": view.task,
        "folder": str(view.layout.root),
        "state": view.state,
        "reason": view.status.data.get("reason"),
        "agents": len(view.agents()),
        "attempts": view.attempts,
        "best": best.data or None,
        "lead": lead.data or None,
        "wall": view.status.data.get("wall"),
    }


def _best(view: RunView) -> str:
    best = view.best_and_lead[0]
    return "the seed" if is_seed(best) else format.score(best.number("median"))


def _row(view: RunView) -> list[str | Text]:
    return [
        view.name,
        view.task,
        tone(view.state),
        str(len(view.agents())),
        str(view.attempts),
        _best(view),
        format.ago(view.status.data.get("wall")),
    ]
