"""`coral eval`: commit the workspace, hand it in, wait for the grade. Standard library only: agents run it all day.

0 graded (also when it failed), 1 refused or nothing to submit, 2 still pending, 130 interrupted. Whatever happens after
the commit, the submission stays and is graded.
"""

from __future__ import annotations

import argparse

from coral.cli.parser import finite

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from coral.cli.commands.submitter import Submitter


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--message", required=True, metavar="MSG", help="what you tried, for others to read")
    parser.add_argument("--no-wait", action="store_true", help="hand it in and go on; `coral wait` gives the result")
    parser.add_argument("--tune", action="store_true", help="a trial of numbers: graded, but no heartbeat counts it")
    parser.add_argument("--again", action="store_true", help="grade an unchanged workspace once more")
    parser.add_argument("--timeout", type=finite, metavar="S", help="wait at most S seconds")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    # Not at the top: that takes longer than all of `coral eval --help`.
    from coral.cli.run_data.run_lookup import agent_here
    from workspace.submit import commit

    layout, agent = agent_here()
    desks: list[Submitter] = []

    def open_desk() -> None:
        """While git is at work: to import what a desk needs takes longer than all that git has to do."""
        from coral.cli.commands.submitter import Submitter

        desks.append(Submitter(layout, agent, args))

    try:
        commit(layout.clone(agent), agent, args.message, lambda made: desks[0].announce(made), open_desk)
        (desk,) = desks
        if not args.no_wait:
            from coral.cli.commands.wait import finish

            return finish(layout, agent, desk.id, desk.seconds, as_json=args.json)
    except KeyboardInterrupt:
        from coral.cli.commands.wait import STOPPED, interrupted

        return interrupted() if any(desk.id for desk in desks) else STOPPED
    if args.json:
        import json

        print(json.dumps({"attempt": None, "state": "pending", "submission": desk.id}))
    else:
        print("handed in; `coral wait` waits for its grade")
    return 0
