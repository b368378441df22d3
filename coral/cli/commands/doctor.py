"""`coral doctor`: says what this machine has for a fleet of agents, what is missing, and what to do about it.

Agent programs are started only to ask them for their version or, with `--ping`, for one word. No other command depends
on the result. For the run around the current directory it also says what is wrong with its folders; `--fix` repairs
what can be repaired without losing anything.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from itertools import chain
from typing import TYPE_CHECKING

from attempts.files import expanded
from coral.cli import EXIT_USER_ERROR
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.reading.run_folder import here, run_around
from coral.reading.run_view import RunView
from coral.views.format import clean
from workspace.layout import can_see_private

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coral.preflight.check import Check

GOOD, PLAIN = ("✓·-✗", "+.-!")


def add_arguments(parser: Parser) -> None:
    parser.exit_codes = {0: "nothing that is needed is missing", EXIT_USER_ERROR: "something is"}
    whose = "the task whose program must be here (default: the one around here)"
    parser.add_argument("task", nargs="?", metavar="TASK", help=whose)
    paid = "also send one real, paid request to each of these (default: the task's, and every program that is here); "
    kept = "some keep that conversation in their own history: docs/runtimes.md"
    parser.add_argument("--ping", nargs="*", metavar="RUNTIME", help=paid + kept)
    fix = "list what is wrong with the folders of the run here, then repair what is safe: missing ones and modes"
    parser.add_argument("--fix", action="store_true", help=fix)
    parser.add_argument("--run", metavar="RUN", help="that run: its folder, its name, or either end of its name")
    parser.add_argument("--json", action="store_true", help="for programs: {ok, checks: [{name, state, text, advice}]}")


def run(args: argparse.Namespace) -> int:
    from coral.preflight.check import Health

    found = []
    for finding in chain(_of_the_run(args), _findings(args.task, args.ping)):
        found.append(finding)
        if not args.json:
            _print(finding)
    ok = all(finding.state is not Health.WRONG for finding in found)
    if args.json:
        print_json({"ok": ok, "checks": [asdict(finding) for finding in found]})
    return 0 if ok else 1


def _of_the_run(args: argparse.Namespace) -> Iterator[Check]:
    """Yield what is wrong with the named run or the one around the current directory, all of it before anything is
    repaired. CoralError if there is no run although one is named or `--fix` is given."""
    from coral.preflight.repairs import broken_folders, check_of, repaired

    layout = run_around(here())
    if args.run or (args.fix and layout is None):
        layout = run_lookup.run_of(argparse.Namespace(run=args.run, task=None))
    if args.fix:
        send_request.as_operator("repair a run")
    if layout is None or not can_see_private(layout):
        return
    found = broken_folders(layout, RunView(layout).agents())
    yield from [check_of(layout, folder, fixing=args.fix) for folder in found]
    if args.fix:
        yield from (repaired(layout, folder) for folder in found if folder.is_safe)


def _findings(task: str | None, pinged: list[str] | None) -> Iterator[Check]:
    """Yield all findings about the machine. `task`: its folder; by default the one around the current directory, if
    any. A task that cannot be read is a finding. `pinged`: runtimes to ping; None sends no request to any program."""
    from coral.config.load import load
    from coral.errors import CoralError
    from coral.preflight.check import Check, Health
    from coral.preflight.doctor import inspect_machine

    config = None
    try:
        path = expanded(task) if task else run_lookup.task_folder()
        config = load(path) if path is not None else None
    except CoralError as error:
        yield Check("task", Health.WRONG, " ".join(str(error).split()), error.hint)
    yield from inspect_machine(here(), config)
    if pinged is not None:
        from coral.preflight.ping import ping_all

        yield from ping_all(config, pinged, lambda text: print(text, file=sys.stderr, flush=True))


def _print(finding: Check) -> None:
    from coral.preflight.check import Health

    marks = GOOD if "utf" in (sys.stdout.encoding or "").lower() else PLAIN
    mark = marks[list(Health).index(finding.state)]
    print(f"{mark} {finding.name:<14} {clean(finding.text)}", flush=True)
    if finding.advice:
        print(f"  {'':<14} {clean(finding.advice)}", flush=True)
