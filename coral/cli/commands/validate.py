"""`coral validate`: makes all checks of a task that are possible before money is spent, one line for each.

The seed is graded for real, in a temporary folder of which nothing is left.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from coral.cli import EXIT_USER_ERROR
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup
from coral.errors import CoralError
from coral.views.format import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coral.config.load import Config
    from coral.preflight.task_check import TaskFinding


def add_arguments(parser: Parser) -> None:
    parser.exit_codes = {0: "ready for a start", EXIT_USER_ERROR: "something stands in the way of a start"}
    parser.add_argument("task", nargs="?", metavar="TASK", help="its folder or file (default: the one around here)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="checked as `coral start` would take them")
    parser.add_argument("--json", action="store_true", help="for programs: {ok, checks: [{name, ok, text, details}]}")


def run(args: argparse.Namespace) -> int:
    found = _found(args)
    ok = all(finding.ok for finding in found)
    if args.json:
        print_json({"ok": ok, "checks": [asdict(finding) for finding in found]}, 2)
    else:
        print("Ready for `coral start`." if ok else "Fix what is marked before `coral start`.")
    return 0 if ok else 1


def _found(args: argparse.Namespace) -> list[TaskFinding]:
    """Return every finding; for people, the findings are printed as they become known."""
    from coral.cli.ui.progress import steps
    from coral.config.load import load
    from coral.preflight.task_check import TaskFinding, grade_findings, quick_findings

    try:
        task, overrides, base = run_lookup.task_of("validate", args.task, args.overrides)
        config = load(task, overrides)
    except CoralError as error:
        if not args.json:
            raise
        first, *lines = str(error).splitlines()
        return [TaskFinding("task", False, first, (*(line.strip() for line in lines), error.hint))]
    found = [
        TaskFinding("task", True, f"{config.task.name} ({config.path})"),
        *_translated(config),
        *quick_findings(config, base / config.workspace.runs),
    ]
    _print(found, quiet=args.json)
    if all(finding.ok for finding in found):
        with steps() as say:  # nothing is printed inside: on a terminal it would go to the line of the steps
            graded = list(grade_findings(config, say))
        _print(graded, quiet=args.json)
        found += graded
    return found


def _translated(config: Config) -> Iterator[TaskFinding]:
    """Yield a finding about a task of the other CORAL."""
    from coral.preflight.task_check import TaskFinding

    if config.translated is not None:
        text = "of the other CORAL; what it needs is translated, as docs/import.md says"
        yield TaskFinding("format", True, text, config.translated)


def _print(found: Iterable[TaskFinding], *, quiet: bool) -> None:
    well, wrong = "✓✗" if "utf" in (sys.stdout.encoding or "").lower() else "+!"
    for finding in () if quiet else found:
        print(f"{well if finding.ok else wrong} {finding.name:<11} {clean(finding.text)}", flush=True)
        for line in finding.details:
            print(f"    {clean(line)}", flush=True)
