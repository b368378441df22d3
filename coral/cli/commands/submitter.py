"""Where a commit becomes a submission: called between the commit and the move of the branch. Standard library only."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from attempts.record import Attempt, Kind, Submission, Verdict
from attempts.store import Store
from coral.cli.run_data import waiting
from coral.cli.ui import format
from coral.errors import CoralError
from workspace.layout import Layout

PENDING_LOOKED_AT = 20

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from workspace.submit import Made


class Submitter:
    """One submission of one agent; `id` is empty until it is written."""

    def __init__(self, layout: Layout, agent: str, args: argparse.Namespace) -> None:
        self.store = Store(layout.attempts)
        self.layout, self.agent, self.args = layout, agent, args
        self.seconds = _seconds(args)
        self.id = ""

    def announce(self, made: Made) -> None:
        """Write the submission; an exception here leaves the workspace and its branch as they were."""
        own = waiting.own_submissions(self.store, self.agent)
        if made.unchanged and not self.args.again:
            self._refuse_pending(made, own)
        twin = self._graded(made) if made.unchanged else None
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
                title=format.line(self.args.message.strip().partition("\n")[0]),
                kind=kind,
                of=twin.number if twin is not None and kind is Kind.CONFIRM else None,
                wait=self.seconds,
                submitted_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            )
        )

    def _graded(self, made: Made) -> Attempt | None:
        """The newest attempt with the same tree.

        A voided one has told nothing about it, and a trial of numbers may be handed in for good afterwards.
        """
        from attempts.index import query  # a database takes as long to load as all the rest, and few need it
        from attempts.index.index import Index

        for number in Index(self.layout.attempts).ask(lambda rows: list(query.with_tree(rows, made.tree))):
            attempt = waiting.published(self.store, number)
            if attempt is None or attempt.tree != made.tree or attempt.verdict is Verdict.VOID:
                continue
            if attempt.kind is not Kind.TUNE or self.args.tune:
                return attempt
        return None

    def _refuse_pending(self, made: Made, own: list[str]) -> None:
        """The same commit twice in the queue helps nobody: the grade of the first is on its way."""
        for name in reversed(own[-PENDING_LOOKED_AT:]):
            outcome = waiting.look(self.store, self.agent, name)
            under_way = outcome.attempt is None and not outcome.refused
            if under_way and waiting.commit_of(self.layout, self.agent, name, outcome) == made.commit:
                which = "" if outcome.number is None else f" as #{outcome.number}"
                again = "coral wait" if outcome.number is None else f"coral wait {outcome.number}"
                raise CoralError(f"cannot submit: nothing changed since you handed it in{which}", f"its grade: {again}")


def _score(attempt: Attempt) -> str:
    return format.score(attempt.score) if attempt.score is not None else f"nothing ({attempt.verdict})"


def _seconds(args: argparse.Namespace) -> float:
    """How long to stay; 0 is not at all."""
    if args.no_wait:
        return 0.0
    return waiting.longest() if args.timeout is None else max(0.0, args.timeout)
