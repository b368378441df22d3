"""`coral eval`: commits the workspace, submits it and waits for the grade. Standard library only, because agents run it
all day.

Whatever happens after the commit, the submission remains and is graded. Most modules are imported only when they are
needed: importing them here would take longer than all of `coral eval --help`.
"""

from __future__ import annotations

import sys

from coral.cli import EXIT_INTERRUPTED, EXIT_PENDING, EXIT_USER_ERROR
from coral.cli.parser import Parser, finite, patience, print_json

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from workspace.layout import Layout
    from workspace.submit import Made

WARNED = 3  # dead ends that one submission is warned of


def add_arguments(parser: Parser) -> None:
    parser.add_argument("-m", "--message", required=True, metavar="MSG", help="what you tried, for others to read")
    parser.add_argument("--no-wait", action="store_true", help="submit and return; `coral wait` gives the result")
    parser.add_argument("--tune", action="store_true", help="a trial of numbers: graded, but no heartbeat counts it")
    parser.add_argument("--again", action="store_true", help="grade an unchanged workspace once more")
    parser.add_argument("--timeout", type=finite, metavar="S", help="wait at most S seconds")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.exit_codes = {
        0: "graded, whatever the verdict; or with --no-wait: submitted",
        EXIT_USER_ERROR: "refused, or nothing to submit",
        EXIT_PENDING: "submitted, not graded yet",
        EXIT_INTERRUPTED: "interrupted; a submission stays",
    }


def run(args: argparse.Namespace) -> int:
    from functools import partial

    from coral.cli.run_data.run_lookup import agent_here
    from workspace.submit import commit

    layout, agent = agent_here()
    submitter = Submitter(layout, agent, args)
    try:
        meanwhile = partial(next, submitter.imports(), None)
        commit(layout.clone(agent), agent, args.message, submitter.submit, meanwhile=meanwhile)
        if not args.no_wait:
            from coral.cli.commands.wait import finish

            return finish(layout, agent, submitter.id, submitter.seconds, as_json=args.json)
    except KeyboardInterrupt:
        if not submitter.id:
            return EXIT_INTERRUPTED
        from coral.cli.commands.wait import interrupted

        return interrupted(layout, agent, submitter.id, as_json=args.json)
    if args.json:
        return print_json({"attempt": None, "state": "pending", "submission": submitter.id}, None)
    print("submitted; `coral wait` waits for its grade")
    return 0


class Submitter:
    """Makes one submission. `id`: empty until the submission is written; `seconds`: how long to wait for its grade."""

    def __init__(self, layout: Layout, agent: str, args: argparse.Namespace) -> None:
        self.layout, self.agent, self.args = layout, agent, args
        self.id = ""
        self.seconds = 0.0
        self.dead_ends: list[tuple[str, str, list[str]]] = []

    def imports(self) -> Iterator[None]:
        """Import what `submit` needs, one part at each `next`, while git is at work."""
        import importlib

        for part in ("attempts.inbox", "datetime", "coral.views.format"):
            importlib.import_module(part)
            if part == "attempts.inbox":
                self._find_dead_ends()
            yield

    def _find_dead_ends(self) -> None:
        from workspace.dead_ends import find_dead_ends
        from workspace.layout import SHARED

        clone = self.layout.clone(self.agent)
        self.dead_ends = find_dead_ends(clone / SHARED, clone / ".git" / "coral-dead-ends.json")

    def _warn(self, made: Made) -> None:
        """Print which dead ends this attempt runs into, before anything is spent on it. It is submitted all the
        same."""
        from functools import cache

        from workspace.dead_ends import met_by
        from workspace.submit import changes

        changed = cache(lambda: changes(self.layout.clone(self.agent), made))
        met = [dead_end for dead_end in self.dead_ends if met_by(dead_end[2], self.args.message, changed)]
        for name, title, about in met[:WARNED]:
            print(f"dead end ({', '.join(about)}): {title}; coral notes --read {name}", file=sys.stderr)
        if len(met) > WARNED:
            print(f"{len(met) - WARNED} more dead ends: coral notes --dead-ends", file=sys.stderr, flush=True)

    def submit(self, made: Made) -> None:
        """Write the submission. An exception here leaves the workspace and its branch as they were."""
        from datetime import UTC, datetime

        from attempts import inbox
        from coral.errors import CoralError
        from coral.views import format

        args, attempts = self.args, self.layout.attempts
        own = inbox.submission_ids(attempts, self.agent)
        if made.unchanged:
            self._refuse_unchanged(own, made)
        elif self.dead_ends:
            self._warn(made)
        self.seconds = 0.0 if args.no_wait else patience(args.timeout)
        self.id = inbox.next_id(own[-1] if own else "")
        submission = {
            "id": self.id,
            "agent": self.agent,
            "commit": made.commit,
            "tree": made.tree,
            "title": format.line(args.message.strip().partition("\n")[0]),
            "kind": "tune" if args.tune else "real",
            "wait": self.seconds,
            "submitted_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        }
        try:
            inbox.submit(attempts, submission)
        except FileExistsError:
            raise CoralError(f"cannot submit {self.id}: it is in the inbox already", "submit again") from None

    def _refuse_unchanged(self, own: list[str], made: Made) -> None:
        """Raise CoralError if this tree waits for its grade or has been graded, unless `--again` asks for one more
        grade."""
        from attempts.store import Store
        from coral.cli.run_data import submissions
        from coral.errors import CoralError
        from coral.views import format

        if self.args.again:
            return
        store = Store(self.layout.attempts)
        if pending := submissions.pending(self.layout, store, self.agent, own, made.commit):
            which, wait = ("", "") if pending.number is None else (f" as #{pending.number}", f" {pending.number}")
            what = f"nothing changed since you submitted it{which}"
            raise CoralError(f"cannot submit: {what}", f"its grade: coral wait{wait}")
        same = submissions.graded(store, made.tree, tune=self.args.tune)
        if same is not None:
            score = format.score(same.score) if same.score is not None else f"nothing ({same.verdict})"
            what, hint = f"nothing changed since #{same.number}, which scored {score}", "coral eval --again"
            raise CoralError(f"cannot submit: {what}", f"change something, or grade the same again: {hint}")
