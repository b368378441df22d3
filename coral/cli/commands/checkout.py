"""`coral checkout`: sets the workspace to any attempt of the run. Standard library only."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from attempts.record import Attempt, Kind
from attempts.store import Missing, Store
from coral.cli.parser import print_json
from coral.cli.run_data.run_lookup import agent_here
from coral.errors import CoralError
from coral.reading.lenient_json import read
from coral.reading.visibility import alone_in, check_may_see
from coral.views import format
from workspace.layout import Layout

if TYPE_CHECKING:
    from attempts.index.index import Index
    from workspace.submit import Moved

JSON_HELP = "for programs: commit, attempt, saved"
LEAD = "lead"
NUMBER = re.compile(r"#?[0-9]{1,9}")  # a commit that is all digits is longer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "to",
        metavar="N|COMMIT|lead",
        help="the number of an attempt (0 is the seed), a commit, or lead: what to build on",
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def run(args: argparse.Namespace) -> int:
    from workspace.submit import checkout

    layout, agent = agent_here()
    to = _lead(layout) if args.to == LEAD else args.to
    commit = _commit(layout, to) if NUMBER.fullmatch(to) else _visible(layout, to)
    print_position(layout, checkout(layout.clone(agent), commit, agent), as_json=args.json)
    return 0


def _lead(layout: Layout) -> str:
    """Return the number of the lead; for an agent that may see only its own attempts, that of its own best."""
    status = read(layout.status)
    only_agent = alone_in(layout)
    own = (agent.text("best_number") for agent in status.objects("agents") if agent.text("name") == only_agent)
    if status:
        number = next(own, "") if only_agent else status.inner("lead").text("number")
    else:
        from coral.reading.run_view import RunView

        number = RunView(layout).best_and_lead[1].text("number")
    if not number:
        raise CoralError("cannot check out the lead: nothing is known of it yet", "`coral log` lists the attempts")
    return number


def print_position(layout: Layout, moved: Moved, *, as_json: bool) -> None:
    """Print where the workspace is now, and where its uncommitted changes are kept."""
    if as_json:
        there = _with_commit(layout, moved.commit)
        number = there[-1].number if there else None
        print_json({"commit": moved.commit, "attempt": number, "saved": moved.saved or None}, None)
        return
    print(f"the workspace is at {_name(layout, moved.commit)}")
    if moved.saved:
        print(f"  what you had not committed is kept: coral checkout {moved.saved[:12]}")


def _commit(layout: Layout, number: str) -> str:
    try:
        attempt = Store(layout.attempts).read(int(number.removeprefix("#")))
    except Missing:
        from attempts.index import query

        last = _index(layout).ask(query.last)
        raise CoralError(f"cannot check out #{number}: there is no such attempt", f"the last one is #{last}") from None
    check_may_see(alone_in(layout), attempt, "check out")
    return attempt.commit


def _visible(layout: Layout, commit: str) -> str:
    """Return the commit, which any clone can reach in the hub. CoralError if it belongs to an attempt that this agent
    may not see."""
    if agent := alone_in(layout):
        for attempt in _with_commit(layout, commit):
            check_may_see(agent, attempt, "check out")
    return commit


def _name(layout: Layout, commit: str) -> str:
    """Return the number and the score of the last attempt with this commit, confirmations left out; else the commit."""
    from attempts.index import query

    there = _with_commit(layout, commit)
    if not there:
        return commit[:12]
    last = there[-1]
    who = f" by {last.agent}" if last.agent else " (the seed)"
    found = _index(layout).ask(lambda rows: query.measured(rows, last.number))
    return f"#{last.number}{who}: {format.score(found.median if found else last.score)}"


def _with_commit(layout: Layout, start: str) -> list[Attempt]:
    from attempts.index import query

    found = _index(layout).ask(lambda rows: query.with_commit(rows, start.casefold()))
    attempts = (Store(layout.attempts).find(number) for number in sorted(found))
    return [attempt for attempt in attempts if attempt is not None and attempt.kind is not Kind.CONFIRM]


def _index(layout: Layout) -> Index:
    from attempts.index.index import Index  # loading a database takes as long as all else

    return Index(layout.attempts)
