"""`coral ask`: lets an agent ask the operator. The agent goes on meanwhile, and gets the answer as a message."""

import argparse

from coral.cli.run_data import run_lookup, send_request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="the question, with what you will do without an answer")
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)


def run(args: argparse.Namespace) -> int:
    layout, agent = run_lookup.agent_here()
    return send_request.ask(layout, agent, {"type": "ask", "text": args.text}, as_json=args.json)
