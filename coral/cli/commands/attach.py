"""`coral attach`: shows a run live that another process supervises. Leaving the view stops nothing."""

import argparse

from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import command
from coral.cli.ui.live import follow
from coral.cli.ui.summary import summarize
from coral.errors import CoralError
from coral.reading.run_view import RunView

HINT = "Ctrl-C leaves; the run continues"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--plain", action="store_true", help="one line per event instead of a live view")
    parser.add_argument("--verbose", action="store_true", help="every step of each launch, as with the key v")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    name, view, status = layout.root.name, RunView(layout), command("status", layout)
    if not view.is_open:  # then it is not known who supervises
        hint = f"is it your run? `{status}` shows where it stands"
        raise CoralError(f"cannot attach to {name}: {layout.private} cannot be read", hint)
    if view.supervisor is None and not view.is_made:
        why, hint = run_lookup.unmade(layout)
        raise CoralError(f"cannot attach to {name}: {why}", hint)
    if view.supervisor is None:
        hint = f"`{status}` shows where it stands, `{command('resume', layout)}` continues it"
        raise CoralError(f"cannot attach to {name}: nobody supervises it", hint)
    try:
        follow(layout, lambda: RunView(layout).supervisor is None, plain=args.plain, verbose=args.verbose, hint=HINT)
    except KeyboardInterrupt:
        print(f"left; {name} continues: `{command('attach', layout)}` shows it, `{command('stop', layout)}` ends it")
        return 0
    summarize(layout)
    return 0
