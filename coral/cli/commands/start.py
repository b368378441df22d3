"""`coral start`: makes a run of a task, grades its seed, and supervises the fleet in this terminal until the run
ends."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from coral.cli.parser import print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import command
from coral.cli.ui.progress import steps
from coral.errors import CoralError
from coral.processes import received_signals
from coral.reading.run_folder import here
from coral.views.format import plural
from workspace.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from coral.cli.run_data.earlier import EarlierKnowledge
    from coral.config.load import Config

HINT = "Ctrl-C stops the run"
BEGIN_LOOK_SECONDS = 0.02  # between two looks whether the supervisor has begun


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", nargs="?", metavar="TASK", help="its folder or file (default: the one around here)")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="for this run: agents.count=4 budget.hours=2")
    known = "begin with what an earlier run, or a folder of `coral knowledge publish`, has learned; repeatable"
    parser.add_argument("--knowledge", action="append", default=[], metavar="RUN|FOLDER", help=known)
    parser.add_argument("--yes", action="store_true", help="start it although it may cost more than budget.ask_above")
    add_watching(parser)


def add_watching(parser: argparse.ArgumentParser) -> None:
    """Add the options of how a run is watched, which `start` and `resume` share."""
    parser.add_argument("--detach", action="store_true", help="supervise in the background and return at once")
    parser.add_argument("--plain", action="store_true", help="one line per event instead of a live view")
    parser.add_argument("--verbose", action="store_true", help="every step of each launch, as with the key v")
    parser.add_argument("--ui", action="store_true", help="serve the dashboard meanwhile, as `coral ui` does")
    parser.add_argument("--json", action="store_true", help="for programs, with --detach: run, path, pid")


def check_watching(args: argparse.Namespace) -> None:
    """Raise CoralError for options of watching that contradict each other, before anything is started."""
    if args.json and not args.detach:
        raise CoralError("cannot print JSON of a run that is watched", "add --detach, and use `coral status --json`")
    if args.ui and args.detach:
        raise CoralError("cannot serve the dashboard and return at once", "start it afterwards: coral ui")
    if args.ui:
        from coral.cli.commands.ui import check_installed

        check_installed()


def run(args: argparse.Namespace) -> int:
    from coral.agent_setup.prices import check_unlimited
    from coral.config.load import load
    from coral.preflight.task_changes import seed_change
    from coral.preflight.unchecked import attempted
    from coral.runs.create import create_run, remove_run

    check_watching(args)
    task, overrides, base = run_lookup.task_of("start", args.task, args.overrides)
    config = load(task, overrides)
    check_unlimited(config)
    runs = base / config.workspace.runs
    brought = _earlier(args.knowledge)
    ask_for_cost(config, runs, "start", agreed=args.yes)
    advanced = attempted("the seed of the last run", lambda: seed_change(config, runs))
    with received_signals.hold():
        try:
            with steps() as say:
                layout = create_run(config, runs, say, _import_ahead)
        except KeyboardInterrupt:
            print("coral: interrupted before the run began; nothing was left behind", file=sys.stderr)
            raise
        from coral.journal.fold import has_begun

        for text in filter(None, (*_notices(config, args.task, layout), advanced)):
            print(f"coral: {text}", file=sys.stderr)
        if not args.json:
            print(f"run {layout.root.name} in {shown(layout.root)}")
        try:
            _bring_in(brought, layout, config)
            return watch(layout, args, config=config)
        except (CoralError, KeyboardInterrupt) as error:
            if has_begun(layout) or not layout.private.exists():  # nothing is known of a run that was moved away
                raise
            remove_run(layout)
            if isinstance(error, KeyboardInterrupt):
                raise
            raise CoralError(str(error), "nothing was left behind") from error


def _notices(config: Config, task: str | None, layout: Layout) -> list[str]:
    """Return what the user is told of a run before it begins; some of the texts may be empty. None of them stops the
    start."""
    from attempts.store import Store
    from coral.agent_setup.own_user import places_of_agents
    from coral.agent_setup.prices import budget_warning
    from coral.agent_setup.roster import Roster
    from coral.notify.notifier import targets_of
    from coral.preflight.task_changes import uncommitted_text
    from coral.preflight.unchecked import attempted
    from coral.processes import seal
    from workspace.layout import folder_of_runs
    from workspace.seed import uncommitted

    def sealing() -> str:
        return seal.warning(config.workspace.seal, places_of_agents(config, Roster(config), folder_of_runs(layout)))

    checks = {
        "the task's format": lambda: _translated_text(config, task),
        "the seed": lambda: uncommitted_text(left) if (left := uncommitted(config.seed)) else "",
        "the budget": lambda: budget_warning(config, Store(layout.attempts).read(0).seconds),
        "the seal": sealing,
    }
    untold = [f"{problem}: nobody is told there" for problem in targets_of(config.alerts)[1]]
    return [*(attempted(name, check) for name, check in checks.items()), *untold]


def _translated_text(config: Config, task: str | None) -> str:
    """Return a sentence about a task of the other CORAL of which not all could be translated; else an empty text."""
    if not config.translated:
        return ""
    name = f" {shlex.quote(task)}" if task else ""
    count = plural(len(config.translated), "thing")
    return f"a task of the other CORAL, of which {count} came out otherwise: `coral validate{name}` says what"


def _earlier(sources: list[str]) -> list[EarlierKnowledge]:
    """Read what earlier runs have learned, before anything is made."""
    if not sources:
        return []
    from coral.cli.run_data.earlier import read

    return [earlier for source in sources for earlier in read(source)]


def _bring_in(brought: list[EarlierKnowledge], layout: Layout, config: Config) -> None:
    """Write what earlier runs have learned into the knowledge of the fleet; if agents do not share, into that of each
    agent."""
    if not brought:
        return
    from coral.agent_setup.roster import Roster
    from coral.cli.run_data.earlier import bring_in

    for shared in {layout.shared_of(agent, config.workspace.share) for agent in Roster(config)}:
        for earlier in brought:
            bring_in(earlier, shared)


def ask_for_cost(config: Config, runs: Path, verb: str, *, agreed: bool) -> None:
    """Print the expected cost of the run. If it is above `budget.ask_above` or unknown, ask the user; CoralError if the
    user does not agree. `verb`: what the user wants to do, start or resume."""
    from coral.preflight.forecast import forecast

    expected = forecast(config, runs)
    if expected is None:
        return
    print(f"coral: cost: {expected.text}", file=sys.stderr)
    limit = config.budget.ask_above
    if limit is None or agreed or (expected.dollars is not None and expected.dollars <= limit):
        return
    if confirmed(f"  that is more than budget.ask_above={limit:g}; {verb} it? [y/N] "):
        return
    raise CoralError(f"cannot {verb}: it may cost more than budget.ask_above={limit:g}", f"add --yes to {verb} it")


def confirmed(question: str) -> bool:
    """Ask the user; return whether the answer is yes. Without a terminal it is no."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _import_ahead() -> None:
    """Import what is needed once the run is made. That takes long, so it is done while git and the grader are at
    work."""
    import coral.supervisor.loop  # noqa: F401


def watch(
    layout: Layout,
    args: argparse.Namespace,
    overrides: tuple[str, ...] = (),
    config: Config | None = None,
    begin: Callable[[], object] = lambda: None,
) -> int:
    """Supervise a prepared run: in the background, or in this process with the live view beside it and the summary at
    the end. Return the exit code. `overrides`, `config` and `begin` are those of `supervise`."""
    if args.detach:
        from coral.runs.detach import detach

        return _print_detached(layout, detach(layout, overrides, config, begin), as_json=args.json)
    with contextlib.ExitStack() as meanwhile:
        hint = HINT
        if args.ui:
            from coral.cli.commands.ui import beside

            address = meanwhile.enter_context(beside(layout))
            print(f"dashboard: {address}", flush=True)
            hint = f"{address} · {HINT}"
        return _watch_here(layout, args, overrides, config, begin, hint)


def _watch_here(
    layout: Layout,
    args: argparse.Namespace,
    overrides: tuple[str, ...],
    config: Config | None,
    begin: Callable[[], object],
    hint: str,
) -> int:
    from coral.cli.ui.terminal_screen import suspendable
    from coral.runs.detach import shown_supervisor
    from coral.supervisor.loop import supervise

    over, since = threading.Event(), layout.events.stat().st_size if layout.events.exists() else 0

    def show() -> None:
        while not over.is_set() and shown_supervisor(layout) != os.getpid():
            over.wait(BEGIN_LOOK_SECONDS)
        # Only once the agents are started: importing what draws takes as long as that, and they would wait for it.
        from coral.cli.ui.live import follow

        with contextlib.suppress(BrokenPipeError):  # no reader is left, as after `| head`: the run continues
            follow(layout, over.is_set, plain=args.plain, verbose=args.verbose, since=since, hint=hint)

    view = threading.Thread(target=show, name="view", daemon=True)
    with received_signals.hold(), suspendable():
        view.start()
        try:
            code = supervise(layout, overrides, config=config, begin=begin)
        finally:
            over.set()
            view.join(5)
        # `hold` also keeps a second or a late Ctrl-C, which would cut off the summary.
        from coral.cli.ui.summary import summarize

        summarize(layout)
        return code


def _print_detached(layout: Layout, pid: int, *, as_json: bool) -> int:
    if as_json:
        return print_json({"run": layout.root.name, "path": str(layout.root), "pid": pid}, None)
    print(f"supervised by process {pid}: `{command('attach', layout)}` watches, `{command('stop', layout)}` ends it")
    return 0


def shown(path: Path) -> str:
    """Return a path as it is shortest to type from here."""
    try:
        return str(path.relative_to(here()))
    except ValueError:
        return str(path)
