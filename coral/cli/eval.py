"""`coral eval`: commit the workspace, hand it in, wait for the grade. Standard library only: agents run it all day.

0 graded (also when it failed), 1 refused or nothing to submit, 2 still pending, 130 interrupted. Whatever happens after
the commit, the submission stays and is graded.
"""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from attempts.record import Attempt, Kind, Submission, Verdict
from attempts.store import Store
from coral.cli import waiting
from coral.cli.wait import STOPPED, finish, interrupted
from coral.cli.where import agent_here
from coral.errors import CoralError
from workspace.layout import Layout

PENDING_LOOKED_AT = 20

if TYPE_CHECKING:
    from workspace.submit import Made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--message", required=True, metavar="MSG", help="what you tried, for others to read")
    parser.add_argument("--no-wait", action="store_true", help="hand it in and go on; `coral wait` gives the result")
    parser.add_argument("--tune", action="store_true", help="a trial of numbers: graded, but no heartbeat counts it")
    parser.add_argument("--again", action="store_true", help="grade an unchanged workspace once more")
    parser.add_argument("--timeout", type=float, metavar="S", help="wait at most S seconds")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> int:
    from workspace.submit import commit

    layout, agent = agent_here()
    if not args.message.strip():
        raise CoralError("cannot submit without a message", "coral eval -m 'what you tried and why'")
    seconds = 0.0 if args.no_wait else _patience(args.timeout)
    desk = _Desk(layout, agent, args, seconds)
    try:
        commit(layout.clone(agent), agent, args.message, desk.announce)
    except KeyboardInterrupt:
        return interrupted() if desk.id else STOPPED
    if args.no_wait:
        return _handed_in(desk, args.json)
    return finish(layout, agent, desk.id, seconds, as_json=args.json)


class _Desk:
    """Where a commit becomes a submission: called between the commit and the move of the branch."""

    def __init__(self, layout: Layout, agent: str, args: argparse.Namespace, seconds: float) -> None:
        self.store = Store(layout.attempts)
        self.layout, self.agent, self.args, self.seconds = layout, agent, args, seconds
        self.id = ""

    def announce(self, made: Made) -> None:
        """Write the submission; an exception here leaves the workspace and its branch as they were."""
        own = waiting.own_submissions(self.store, self.agent)
        if made.unchanged and not self.args.again:
            self._refuse_pending(made, own)
        twin = _graded(self.store, made) if made.unchanged else None
        if twin is not None and not self.args.again:
            raise CoralError(
                f"cannot submit: nothing changed since #{twin.number}, which scored {_score(twin)}",
                "change something, or grade the same again: coral eval --again",
            )
        kind = Kind.TUNE if self.args.tune else Kind.REAL if twin is None else Kind.CONFIRM
        self.id = self.store.next_id(own[-1] if own else "")
        self.store.submit(
            Submission(
                id=self.id,
                agent=self.agent,
                commit=made.commit,
                tree=made.tree,
                title=self.args.message.strip().partition("\n")[0],
                kind=kind,
                of=twin.number if twin is not None and kind is Kind.CONFIRM else None,
                wait=self.seconds,
                submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            )
        )

    def _refuse_pending(self, made: Made, own: list[str]) -> None:
        """The same commit twice in the queue helps nobody: the grade of the first is on its way."""
        for name in reversed(own[-PENDING_LOOKED_AT:]):
            outcome = waiting.look(self.store, self.agent, name)
            if not outcome.settled and waiting.commit_of(self.layout, self.agent, name, outcome) == made.commit:
                which = "" if outcome.number is None else f" as #{outcome.number}"
                again = "coral wait" if outcome.number is None else f"coral wait {outcome.number}"
                raise CoralError(f"cannot submit: nothing changed since you handed it in{which}", f"its grade: {again}")


def _graded(store: Store, made: Made) -> Attempt | None:
    """The newest attempt with the same tree; one that was voided has told nothing about it."""
    for number in reversed(store.numbers()):
        attempt = waiting.published(store, number)
        if attempt is not None and attempt.tree == made.tree and attempt.verdict is not Verdict.VOID:
            return attempt
    return None


def _patience(wanted: float | None) -> float:
    longest = waiting.longest()
    return longest if wanted is None else max(0.0, wanted)


def _score(attempt: Attempt) -> str:
    from coral.cli import words

    return words.score(attempt.score) if attempt.score is not None else f"nothing ({attempt.verdict})"


def _handed_in(desk: _Desk, as_json: bool) -> int:
    if as_json:
        print(json.dumps({"attempt": None, "state": "pending", "submission": desk.id}))
    else:
        print("handed in; `coral wait` waits for its grade")
    return 0
