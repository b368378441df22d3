"""`coral alert`: lets an agent, or a script of the operator, tell the operator what needs a person."""

import argparse

from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError
from coral.reading import visibility
from workspace.layout import OPERATOR


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what needs a person, in one sentence")
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    if not args.text.strip():
        raise CoralError("cannot alert the operator of nothing", "coral alert 'the data in train/ is truncated'")
    layout, sender = run_lookup.agent_here() if visibility.is_agent() else (run_lookup.run_of(args), OPERATOR)
    return send_request.ask(layout, sender, {"type": "alert", "text": args.text}, as_json=args.json)
