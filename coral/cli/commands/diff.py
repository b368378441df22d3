"""`coral diff`: shows the uncommitted changes, which the next `coral eval` would submit. Standard library only."""

import argparse
import os
import sys

from coral.cli.parser import print_json
from coral.cli.run_data.run_lookup import agent_here
from coral.views import format

COLOURS = {"+": "\x1b[32m", "-": "\x1b[31m", "@": "\x1b[36m"}
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs: diff")


def run(args: argparse.Namespace) -> int:
    from workspace.submit import diff

    layout, agent = agent_here()
    text = diff(layout.clone(agent))
    if args.json:
        return print_json({"diff": text}, None)
    if not text:
        print("nothing changed since the last commit", file=sys.stderr)
        return 0
    if sys.stdout.isatty():
        text = shown(text) if "NO_COLOR" in os.environ else coloured(text)
    print(text)
    return 0


def shown(text: str) -> str:
    """Return a difference for a terminal: without control characters of its own, an escape as `␛`."""
    return format.source(text.replace("\x1b", "␛"))


def coloured(text: str) -> str:
    """Return a difference for a terminal, with added and removed lines in colour."""
    lines = []
    for line in shown(text).split("\n"):
        colour = BOLD if line.startswith(("diff ", "--- ", "+++ ")) else COLOURS.get(line[:1], "")
        lines.append(f"{colour}{line}{PLAIN}" if colour else line)
    return "\n".join(lines)
