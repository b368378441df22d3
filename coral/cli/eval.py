"""`coral eval`: commit the workspace, hand it in, wait for the grade. Standard library only: agents run it all day.

0 graded (also when it failed), 1 refused or nothing to submit, 2 still pending, 130 interrupted. Whatever happens after
the commit, the submission stays and is graded.
"""

from __future__ import annotations

import argparse

from coral.cli.parser import finite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--message", required=True, metavar="MSG", help="what you tried, for others to read")
    parser.add_argument("--no-wait", action="store_true", help="hand it in and go on; `coral wait` gives the result")
    parser.add_argument("--tune", action="store_true", help="a trial of numbers: graded, but no heartbeat counts it")
    parser.add_argument("--again", action="store_true", help="grade an unchanged workspace once more")
    parser.add_argument("--timeout", type=finite, metavar="S", help="wait at most S seconds")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    # Not at the top: that takes longer than all of `coral eval --help`.
    from coral.cli import desk as desks
    from coral.cli.wait import STOPPED, finish, interrupted
    from coral.cli.where import agent_here
    from workspace.submit import commit

    layout, agent = agent_here()
    desk = desks.Desk(layout, agent, args, _seconds(args))
    try:
        commit(layout.clone(agent), agent, args.message, desk.announce)
        if not args.no_wait:
            return finish(layout, agent, desk.id, desk.seconds, as_json=args.json)
    except KeyboardInterrupt:
        return interrupted() if desk.id else STOPPED
    if args.json:
        import json

        print(json.dumps({"attempt": None, "state": "pending", "submission": desk.id}))
    else:
        print("handed in; `coral wait` waits for its grade")
    return 0


def _seconds(args: argparse.Namespace) -> float:
    """How long to stay; 0 is not at all."""
    from coral.cli.waiting import longest

    if args.no_wait:
        return 0.0
    return longest() if args.timeout is None else max(0.0, args.timeout)
