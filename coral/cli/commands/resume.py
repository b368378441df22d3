"""`coral resume`: continue a run that was stopped, or whose supervisor died."""

import argparse
import shlex
import sys

from coral.agent_setup.roster import check_same_programs
from coral.cli.commands.start import add_watching, check_watching, watch
from coral.cli.run_data import run_lookup, send_request
from coral.cli.run_data.run_lookup import command
from coral.cli.run_data.run_view import RunView
from coral.config.load import load_frozen
from coral.errors import CoralError
from coral.journal import fold
from coral.preflight.resume_check import EndsAtOnce, ends_at_once
from coral.preflight.task_changes import task_changes, text_of
from coral.views.reasons import reason_text, run_end_text
from workspace.disk import disk_problem_of
from workspace.layout import Layout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    changes = "changes of the task from here on: budget.hours=4"
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help=changes)
    parser.add_argument("-i", "--instruction", metavar="TEXT", help="a message to all agents")
    run_lookup.add_arguments(parser)
    add_watching(parser)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("resume a run")
    check_watching(args)
    layout = run_lookup.run_of(args)
    pid = RunView(layout).supervisor
    if pid is not None:
        hint = f"`{command('attach', layout)}` watches it"
        raise CoralError(f"cannot resume {layout.root.name}: process {pid} supervises it already", hint)
    if problem := disk_problem_of(layout.root):
        hint = "what still runs continues; free some space, or end it with `coral stop`"
        raise CoralError(f"cannot resume {layout.root.name}: {problem}", hint)
    # A mistake in the overrides is reported here, not in the log of a supervisor.
    changed = load_frozen(layout.task_file, args.overrides)
    if args.overrides:
        check_same_programs(load_frozen(layout.task_file), changed, fold(layout.journal).fleet.agents)
    if end := ends_at_once(layout, changed):
        raise CoralError(f"cannot resume {layout.root.name}: {_why(end)}", _how(layout, args.overrides, end))
    send_request.take_back(layout, sender, "stop", "leave")
    if args.instruction and args.instruction.strip():
        send_request.send(layout, sender, {"type": "tell", "to": "*", "text": args.instruction.strip()})
    if not args.json:
        print(f"resuming {layout.root.name}")
    if differing := task_changes(layout, changed):
        print(f"coral: this run continues with its own copy of {text_of(differing)}, changed since", file=sys.stderr)
        print("  `coral start` makes a run of the task as it is now", file=sys.stderr)
    return watch(layout, args, tuple(args.overrides), None if args.overrides else changed)


def _why(end: EndsAtOnce) -> str:
    agents = ", ".join(sorted({reason_text(reason) for reason in end.agents}))
    return f"{run_end_text(end.end)}{': ' if agents else ''}{agents}"


def _how(layout: Layout, overrides: list[str], end: EndsAtOnce) -> str:
    """The command that would continue the run: with larger budgets, and with the other overrides that were given."""
    if not end.overrides:
        return f"`{command('status', layout)}` shows why each agent ended"
    raised = {override.partition("=")[0] for override in end.overrides}
    kept = [override for override in overrides if override.partition("=")[0].strip() not in raised]
    return f"`{command('resume', layout)} {shlex.join([*kept, *end.overrides])}` continues it"
