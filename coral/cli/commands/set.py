"""`coral set`: changes a budget of a running run. The change takes effect at once, and agents are told of it."""

import argparse

from coral.cli.parser import Parser
from coral.cli.run_data import run_lookup, send_request
from coral.cli.run_data.set_budget import set_request


def add_arguments(parser: Parser) -> None:
    what = "budget.KEY=VALUE: hours, attempts, money, tokens, plateau or target; per_agent.attempts, .money or .tokens"
    parser.add_argument("setting", metavar="KEY=VALUE", help=f"{what}. VALUE: a number, `none`, or `task` to undo it")
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("change the budget")
    layout = run_lookup.run_of(args)
    return send_request.ask(layout, sender, set_request(args.setting), as_json=args.json)
