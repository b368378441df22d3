"""`coral audit`: attacks a task's grader, and says which attacks succeeded, where, and how to write it instead."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING

from attempts.record import CLOSED
from coral.cli import EXIT_USER_ERROR
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.views import format

if TYPE_CHECKING:
    from coral.audit.audit import AttackResult, Audit


def add_arguments(parser: Parser) -> None:
    parser.exit_codes = {0: "no attack got through", EXIT_USER_ERROR: "an attack got through"}
    parser.add_argument("task", nargs="?", metavar="TASK", help="its folder or file (default: the one around here)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="as `coral start` would take them")
    parser.add_argument(
        "--json", action="store_true", help="for programs: holds, level, scores, failures, channel, results"
    )


def run(args: argparse.Namespace) -> int:
    from coral.audit.audit import audit
    from coral.cli.ui.progress import steps
    from coral.config.load import load

    send_request.as_operator("audit a task")
    task, overrides, _ = run_lookup.task_of("audit", args.task, args.overrides)
    config = load(task, overrides)
    with steps() as say:
        found = audit(config, say)
    if args.json:
        print_json({"holds": found.holds, **asdict(found)}, 2)
    else:
        _print(found)
    return 0 if found.holds else 1


def _print(found: Audit) -> None:
    from coral.audit.audit import State

    scores = sorted(set(found.scores))
    often = f"graded {len(found.scores)} times"
    same = f"the same, {often}" if len(scores) == 1 else f"to {format.score(scores[-1])}, {often}"
    sealed = "not sealed" if found.level == "none" else f"sealed by {found.level}"
    print(f"The seed scores {format.score(scores[0])}, {same}. The grader is {sealed}.")
    if found.failures:
        often = f"{len(found.failures)} of {len(found.failures) + len(found.scores)} grades of it failed"
        print(f"But {often}, as this one: {format.clean(found.failures[0])}: a score of this task may be luck.")
    if found.channel != CLOSED:
        why = f", since {found.opened}" if found.opened else ""
        print(f"Its channel is {found.channel}{why}: code of the candidate may have written that score.")
    for state in (State.THROUGH, State.LOOK, State.CLOSED):
        for result in found.results:
            if result.state is state:
                _print_result(result)
    untried = Counter(result.text for result in found.results if result.state is State.UNTRIED)
    for text, count in untried.items():
        print(f"- {State.UNTRIED:<11}  {format.plural(count, 'attack')}: {text}")
    through = sum(result.state is State.THROUGH for result in found.results)
    tried = sum(result.state is not State.UNTRIED for result in found.results)
    if through:
        print(
            f"\n{through} of {tried} attacks got through: a score of this task proves nothing yet. See docs/trust.md."
        )
    else:
        print(f"\nNone of {tried} attacks got through. Others may: read what the grader does with each file.")


def _print_result(result: AttackResult) -> None:
    from coral.audit.audit import State

    marks = "✗?✓" if "utf" in (sys.stdout.encoding or "").lower() else "x?+"
    mark = marks[(State.THROUGH, State.LOOK, State.CLOSED).index(result.state)]
    print(f"{mark} {result.state:<11}  {format.clean(result.attack)}: {format.clean(result.text)}")
    if result.where:
        print(f"{'':15}how it got in: {format.clean(result.where)}")
    if result.advice:
        print(f"{'':15}{result.advice}")
