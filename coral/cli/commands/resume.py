"""`coral resume`: continues a run that was stopped, or whose supervisor died."""

import argparse
import contextlib
import re
import shlex
import sys
from dataclasses import replace

from attempts.store import Store
from coral.agent_setup.prices import check_enforceable, check_unlimited
from coral.agent_setup.roster import Roster, check_same_programs
from coral.cli.commands.start import add_watching, ask_for_cost, check_watching, confirmed, watch
from coral.cli.run_data import run_lookup, send_request
from coral.cli.run_data.run_lookup import command
from coral.cli.ui.progress import steps
from coral.config.load import Config, load, load_frozen
from coral.errors import CoralError
from coral.fleet.events import TaskChanged
from coral.journal import Journal, fold, segments
from coral.preflight.resume_check import EndsAtOnce, changes_since_supervised, ends_at_once
from coral.preflight.task_changes import task_changes
from coral.reading.run_view import RunView
from coral.runs.prepare import latest_baseline
from coral.runs.reload import changes_holdout, changes_scores, pending, stage, withdraw
from coral.runs.roll_back import carry_out, planned
from coral.supervisor.lock import hold_lock
from coral.views import format
from coral.views.format import plural
from coral.views.reasons import reason_text, run_end_text
from workspace.disk import disk_problem_of
from workspace.layout import Layout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    changes = "changes of the task from here on: budget.hours=4"
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help=changes)
    reload = (
        "take in the task as it is now; if scores mean something else then, they are not compared with earlier ones"
    )
    parser.add_argument("--reload", action="store_true", help=reload)
    parser.add_argument("-i", "--instruction", metavar="TEXT", help="a message to all agents")
    agree = "go on although it may cost more than budget.ask_above, or although somebody has changed the run"
    parser.add_argument("--yes", action="store_true", help=agree)
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
    _check_made(layout)
    _roll_back_if_damaged(layout, agreed=args.yes)
    is_untouched = _check_untouched(layout, agreed=args.yes)
    # A mistake in the overrides is reported here, not in the log of a supervisor.
    before, change = load_frozen(layout.task_file), pending(layout)
    differing = task_changes(layout, before)
    config = _reloaded(before, args.overrides) if args.reload else load_frozen(layout.task_file, args.overrides)
    if config != before:
        _check_changes(layout, args, before, config)
    staged = args.reload and bool(differing or config != before or change)
    if staged:
        change = _stage(layout, args, config)
    elif end := ends_at_once(layout, config, change):
        raise _refusal(layout, args, end)
    if not args.json:
        print(f"resuming {layout.root.name}")
    if change is not None:
        _tell_change(change, differing if staged else None)
    elif differing and is_untouched:
        print(
            f"coral: this run continues with its own copy of {format.some_of(differing)}, changed since",
            file=sys.stderr,
        )
        print(
            "  `coral resume --reload` takes in the task as it is now, `coral start` makes a run of it", file=sys.stderr
        )
    elif args.reload:
        print("coral: nothing of the task has changed since the run took it in", file=sys.stderr)

    def begin() -> None:
        send_request.take_back(layout, sender, "stop", "leave")
        if text := (args.instruction or "").strip():
            send_request.send(layout, sender, {"type": "tell", "to": "*", "text": text})

    # The staged task has the overrides in it.
    overrides = () if staged else tuple(args.overrides)
    return watch(layout, args, overrides, None if change or args.overrides else config, begin)


def _check_made(layout: Layout) -> None:
    """Raise CoralError for a run whose `coral start` was killed before the seed was graded: no supervisor can begin."""
    if not segments(layout.journal) and Store(layout.attempts).witness(0) is None:
        why, hint = run_lookup.unmade(layout)
        raise CoralError(f"cannot resume {layout.root.name}: {why}", hint)


def _roll_back_if_damaged(layout: Layout, *, agreed: bool) -> None:
    """Roll a damaged journal back to its last good state. CoralError if there is none; or if records that agents could
    have written would be believed, and the user does not agree."""
    with hold_lock(layout.lock):
        if (plan := planned(layout)) is None:
            return
        note, numbers = plan.note, ", ".join(f"#{number}" for number in plan.unsure)
        text = f"the journal is damaged at line {note.line} of {note.file} ({note.why})"
        if numbers and not agreed:
            unsure = f"{text}, and only the ledger, where agents could write, has {numbers}"
            if not confirmed(f"coral: {unsure}; resume {layout.root.name} with it? [y/N] "):
                hint = f"`{command('log', layout)}` shows the records; --yes resumes with them"
                raise CoralError(f"cannot resume {layout.root.name}: {unsure}", hint)
        carry_out(layout, plan)
    lost = f"{plural(note.lines, 'line')} of it are lost" if note.lines else "nothing of it is lost"
    print(f"coral: {text}: the run goes on from the last good state, and {lost}", file=sys.stderr)
    print(f"  the damaged file is kept as {note.kept}", file=sys.stderr)


def _check_untouched(layout: Layout, *, agreed: bool) -> bool:
    """Ask the user whether to go on if somebody has changed the run while nobody supervised it. CoralError if the user
    does not agree. Return whether nothing was changed."""
    found = changes_since_supervised(layout)
    if not found:
        return True
    text = f"since its last supervisor: {'; '.join(found)}"
    if agreed:
        print(f"coral: {text}; it is taken as it is", file=sys.stderr)
    elif not confirmed(f"coral: {text}; resume {layout.root.name} with it? [y/N] "):
        hint = "`coral replay` shows the journal; `coral start` begins anew; --yes resumes with it as it is"
        raise CoralError(f"cannot resume {layout.root.name}: {text}", hint)
    with hold_lock(layout.lock), contextlib.closing(Journal(layout.journal)) as journal:
        journal.begin_next()
    return False


def _check_changes(layout: Layout, args: argparse.Namespace, before: Config, config: Config) -> None:
    """Raise CoralError if the run cannot go on with the changed task, or a start would refuse it."""
    fleet = fold(layout.journal).fleet
    check_same_programs(before, config, fleet.agents, fleet.run.members)
    if not args.reload and (changes_scores(before, config) or changes_holdout(before, config)):
        what = f"cannot resume {layout.root.name}: {' '.join(args.overrides)} changes what scores mean"
        raise CoralError(what, "add --reload: then no new score is compared with an earlier one")
    roster = Roster(config)
    if config.agents != before.agents:
        roster.check()
    check_unlimited(config, "resume")
    check_enforceable(config, roster, "resume")
    ask_for_cost(config, layout.root.parent.parent, "resume", agreed=args.yes)


def _reloaded(before: Config, overrides: list[str]) -> Config:
    """Return the task as it is now, with all overrides that the run was ever given."""
    try:
        return load(before.path, (*before.overrides, *overrides))
    except CoralError as error:
        raise CoralError(f"cannot reload the task: {error}", error.hint) from error


def _stage(layout: Layout, args: argparse.Namespace, config: Config) -> TaskChanged:
    """Stage the task for the next supervisor. CoralError if the run would not go on with it; where that is known
    beforehand, before the seed is graded."""
    run = fold(layout.journal).fleet.run
    if not run.opened:
        raise CoralError(f"cannot reload the task of {layout.root.name}: it has not begun", "`coral start` begins anew")
    expected = TaskChanged(baseline=replace(latest_baseline(layout), epoch=run.epoch + 1))
    if end := ends_at_once(layout, config, expected):
        raise _refusal(layout, args, end)
    with hold_lock(layout.lock), steps() as say:
        try:
            change = stage(layout, config, say)
        except CoralError as error:
            text, staged = f"{error}\0{error.hint}", f"{layout.staged_task}"
            shown = re.sub(rf"{re.escape(staged)}/\d+/(grader|holdout)", str(config.folder), text).split("\0")
            stays = f"the run is as it was: `{command('resume', layout)}` goes on with the task that it has"
            raise CoralError(shown[0], f"{shown[1]}\n{stays}") from error
        if end := ends_at_once(layout, config, change):
            withdraw(layout)
            raise _refusal(layout, args, end)
        return change


def _tell_change(change: TaskChanged, differing: list[str] | None) -> None:
    """Print that the task was taken in. `differing`: the files that changed; None if an interrupted reload is
    completed."""
    what = "an interrupted reload is completed"
    if differing is not None:
        what = f"{format.some_of(differing)} changed" if differing else "other overrides"
    if change.baseline is None:
        print(f"coral: the task is taken in as it is now ({what}); scores stay comparable", file=sys.stderr)
        return
    score = format.score(change.baseline.score)
    print(f"coral: epoch {change.baseline.epoch} begins ({what}): the seed scores {score} now", file=sys.stderr)
    print("  scores from before are kept, and compared with no new one", file=sys.stderr)


def _refusal(layout: Layout, args: argparse.Namespace, end: EndsAtOnce) -> CoralError:
    given = [*(["--reload"] if args.reload else []), *args.overrides]
    return CoralError(f"cannot resume {layout.root.name}: {_why(end)}", _how(layout, given, end))


def _why(end: EndsAtOnce) -> str:
    agents = ", ".join(sorted({reason_text(reason) for reason in end.agents}))
    return f"{run_end_text(end.end)}{': ' if agents else ''}{agents}"


def _how(layout: Layout, overrides: list[str], end: EndsAtOnce) -> str:
    """Return the command that would continue the run: with larger budgets, and with the other overrides that were
    given."""
    if not end.overrides:
        return f"raise agents.count to add another; `{command('status', layout)}` shows why each agent ended"
    raised = {override.partition("=")[0] for override in end.overrides}
    kept = [override for override in overrides if override.partition("=")[0].strip() not in raised]
    return f"`{command('resume', layout)} {shlex.join([*kept, *end.overrides])}` continues it"
