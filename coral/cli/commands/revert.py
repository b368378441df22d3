"""`coral revert`: sets the workspace back to the last commit or, if nothing is uncommitted, to the one before. Nothing
is lost. Standard library only."""

import argparse

from coral.cli.commands.checkout import JSON_HELP, print_position
from coral.cli.run_data.run_lookup import agent_here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def run(args: argparse.Namespace) -> int:
    from workspace.submit import revert

    layout, agent = agent_here()
    print_position(layout, revert(layout.clone(agent), agent), as_json=args.json)
    return 0
