"""`coral answer`: answers a question of an agent, as `coral status` lists them. The agent gets the answer when its turn
or its `coral eval` ends."""

import argparse

from coral.cli.parser import count
from coral.cli.run_data import run_lookup, send_request


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=count, metavar="N", help="the number of the question in `coral status`")
    parser.add_argument("text", metavar="TEXT", help="the answer")
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("answer a question")
    request = {"type": "answer", "number": args.number, "text": args.text}
    return send_request.ask(run_lookup.run_of(args), sender, request, as_json=args.json)
