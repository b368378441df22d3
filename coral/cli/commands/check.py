"""`coral check`: runs the task's public check on the workspace around the current directory, or on the seed of a task.
Nothing is submitted.

The check runs as for the built-in agent: on a copy of the files, with the Python that runs Coral.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from coral.cli import EXIT_INTERRUPTED, EXIT_USER_ERROR
from coral.cli.parser import Parser, finite, patience, print_json
from coral.cli.run_data import run_lookup
from coral.errors import CoralError
from coral.reading.run_folder import here

TYPE_CHECKING = False  # as in typing, which takes long to import
if TYPE_CHECKING:
    from coral.public_check.candidate import Measurement
    from workspace.layout import Layout

LONGEST = 4096  # bytes of the name of a check
NO_CHECK = "cannot check: the task has no public check"


def add_arguments(parser: Parser) -> None:
    parser.description = (
        "Run the task's public check on this workspace as it is, or on the seed of a task. It is not the grader: only "
        "`coral eval` counts. What the check prints goes to standard error."
    )
    parser.add_argument("task", nargs="?", metavar="TASK", help="a task's folder or file: its seed is checked")
    parser.add_argument("--timeout", type=finite, metavar="S", help="stop the check after S seconds (540)")
    parser.add_argument("--json", action="store_true", help="for programs: {score, slack, ok, error, seconds, check}")
    parser.exit_codes = {
        0: "a score, and no broken constraint",
        EXIT_USER_ERROR: "no score, a broken constraint, or no check",
        EXIT_INTERRUPTED: "interrupted; the check has ended",
    }


def run(args: argparse.Namespace) -> int:
    from coral.public_check.check import CheckBroken, check_once

    limit = patience(args.timeout)
    with tempfile.TemporaryDirectory(prefix="coral-check-", ignore_cleanup_errors=True) as folder:
        root, spec = _candidate(args.task, Path(folder))
        began = time.monotonic()
        try:
            measured = check_once(root, spec, limit)
        except CheckBroken as error:
            raise CoralError(f"cannot check: {error}", "mend what it names, then check again") from None
        seconds = time.monotonic() - began
    ok = measured.feasible
    if args.json:
        given = {"score": None if measured.error else measured.score, "slack": list(measured.slack), "ok": ok}
        print_json({**given, "error": measured.error, "seconds": round(seconds, 3), "check": spec}, None)
    else:
        print(_line(measured, spec, seconds))
    return 0 if ok else EXIT_USER_ERROR


def _candidate(task: str | None, scratch: Path) -> tuple[Path, str]:
    """Return the folder to check, and the check: those of the agent's workspace around the current directory, else of a
    task. The files of a seed may be written to `scratch`."""
    from workspace.layout import find_agent

    found = None if task else find_agent(here())
    if found is not None:
        layout, agent = found
        return layout.clone(agent), _check_of(layout, agent)
    from coral.config.load import load
    from coral.preflight.task_changes import uncommitted_text
    from workspace.seed import taken_from, uncommitted

    path, _, _ = run_lookup.task_of("check", task, [])
    config = load(path)
    if not config.task.check:
        raise CoralError(NO_CHECK, "name a function of the seed in task.check, such as check.py:check")
    files = taken_from(config.seed, scratch)
    if left := uncommitted(config.seed):
        print(uncommitted_text(left), file=sys.stderr)
    return files, config.task.check


def _check_of(layout: Layout, agent: str) -> str:
    from attempts.files import read_bytes

    try:
        spec = read_bytes(layout.check(agent), LONGEST).decode().strip()
    except (OSError, ValueError) as error:
        hint = "it is written again before the agent's next launch"
        raise CoralError(f"cannot check: which check there is cannot be read: {error}", hint) from None
    if not spec:
        raise CoralError(NO_CHECK, 'grade what you have: coral eval -m "..."')
    return spec


def _line(measured: Measurement, spec: str, seconds: float) -> str:
    from coral.views import format

    took = f"{spec}, {format.duration(seconds)}"
    if measured.error:
        return f"no score: {format.clean(measured.error)} ({took})"
    if not measured.slack:
        return f"{format.score(measured.score)} ({took})"
    broken = sum(gap < 0 for gap in measured.slack)
    least = f"least slack {format.score(measured.worst)}"
    held = f"{broken} of {format.plural(len(measured.slack), 'constraint')} broken" if broken else ""
    held = held or f"{format.plural(len(measured.slack), 'constraint')} kept"
    return f"{format.score(measured.score)}, {held}, {least} ({took})"
