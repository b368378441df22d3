"""`coral checkout`: put the workspace on any attempt of the run, one's own or another's. Standard library only."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from attempts.store import Missing, Store
from coral.cli import alone, waiting, words
from coral.cli.where import agent_here
from coral.errors import CoralError
from workspace.layout import Layout

if TYPE_CHECKING:
    from workspace.submit import Moved

RECENT = 200  # attempts looked at to name a commit by its number
NUMBER = re.compile(r"#?[0-9]{1,9}")  # a commit in digits alone has more of them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("to", metavar="N|COMMIT", help="the number of an attempt (0 is the seed), or a commit")


def run(args: argparse.Namespace) -> int:
    from workspace.submit import checkout

    layout, agent = agent_here()
    commit = _commit(layout, args.to) if NUMBER.fullmatch(args.to) else _own(layout, args.to)
    say(layout, checkout(layout.clone(agent), commit, agent))
    return 0


def say(layout: Layout, moved: Moved) -> None:
    """Where the workspace is now, and where what it held before was kept."""
    print(f"the workspace is at {_name(layout, moved.commit)}")
    if moved.saved:
        print(f"  what you had not committed is kept: coral checkout {moved.saved[:12]}")


def _commit(layout: Layout, number: str) -> str:
    store = Store(layout.attempts)
    try:
        attempt = store.read(int(number.removeprefix("#")))
    except Missing:
        last = (store.numbers() or [0])[-1]
        raise CoralError(f"cannot check out #{number}: there is no such attempt", f"the last one is #{last}") from None
    alone.check(alone.alone_in(layout), attempt, "check out")
    return attempt.commit


def _own(layout: Layout, commit: str) -> str:
    """The commit, unless it is the attempt of another and agents do not share: the hub's objects are in every clone."""
    agent = alone.alone_in(layout)
    for attempt in Store(layout.attempts).scan() if agent else ():
        if attempt.commit.startswith(commit.casefold()):
            alone.check(agent, attempt, "check out")
    return commit


def _name(layout: Layout, commit: str) -> str:
    store = Store(layout.attempts)
    for number in [*store.numbers()[-RECENT:][::-1], 0]:
        attempt = waiting.published(store, number)
        if attempt is not None and attempt.commit == commit:
            who = f" by {attempt.agent}" if attempt.agent else " (the seed)"
            return f"#{number}{who}: {words.score(attempt.score)}"
    return commit[:12]
