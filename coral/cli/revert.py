"""`coral revert`: the last commit's files again, or the commit before it. Nothing is lost. Standard library only."""

from __future__ import annotations

import argparse

from coral.cli.checkout import say
from coral.cli.where import agent_here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser  # nothing to choose


def run(args: argparse.Namespace) -> int:
    from workspace.submit import revert

    del args
    layout, agent = agent_here()
    say(layout, revert(layout.clone(agent), agent))
    return 0
