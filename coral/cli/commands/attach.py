"""`coral attach`: the live view of a run that something else supervises. Leaving it stops nothing."""

from __future__ import annotations

import argparse

from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.live import follow
from coral.cli.ui.program_name import program
from coral.cli.ui.summary import summarize
from coral.errors import CoralError

HINT = "Ctrl-C leaves; the run goes on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plain", action="store_true", help="one line per event instead of a picture")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    flag, coral = run_lookup.flag(layout), program()
    view = RunView(layout)
    if not view.is_open:  # then it is not known who supervises
        raise CoralError(
            f"cannot attach to {layout.root.name}: {layout.private} cannot be read",
            f"is it your run? `{coral} status{flag}` shows how it stands",
        )
    if view.supervisor is None:
        raise CoralError(
            f"cannot attach to {layout.root.name}: nobody supervises it",
            f"`{coral} status{flag}` shows how it stands, `{coral} resume{flag}` goes on",
        )
    try:
        follow(
            layout, lambda: RunView(layout).supervisor is None, plain=args.plain, hint="Ctrl-C leaves; the run goes on"
        )
    except KeyboardInterrupt:
        print(f"left; {layout.root.name} goes on: `{coral} attach{flag}` comes back, `{coral} stop{flag}` ends it")
        return 0
    summarize(layout)
    return 0
