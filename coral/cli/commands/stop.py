"""`coral stop`: asks the supervisor to end the run, and waits until it has ended. With exit code 0 no process of the
run is left.

With `--keep-agents` only the supervisor ends: agents and grades continue, and `coral resume` takes them over.
"""

import argparse
import contextlib
import math
import os
import sys
import time

from coral.cli import EXIT_PENDING
from coral.cli.parser import Parser, finite, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.cli.run_data.run_lookup import command
from coral.errors import CoralError
from coral.processes.process_tree import Identity, identify, is_alive
from coral.reading.run_view import RunView
from coral.views import format
from workspace.layout import Layout

EXIT_SECONDS = 5.0  # for the supervisor's process to exit once the run has ended
LONGEST = 120.0  # seconds; a stop takes less even where no agent reacts to a signal


def add_arguments(parser: Parser) -> None:
    keep = "end only the supervisor; agents continue, and `coral resume` takes them over"
    parser.add_argument("--keep-agents", action="store_true", help=keep)
    grades = "end the agents, and the run when everything that they submitted is graded"
    parser.add_argument("--after-grades", action="store_true", help=grades)
    parser.add_argument("--reason", default="", help="why, for the records")
    wait = f"wait at most S seconds (default {LONGEST:.0f}; with --after-grades as long as it takes)"
    parser.add_argument("--timeout", type=finite, metavar="S", help=wait)
    parser.add_argument("--json", action="store_true", help="for programs: run, stopped, left, seconds")
    parser.exit_codes = {0: "stopped, and nothing of the run is left", EXIT_PENDING: "not stopped within the timeout"}
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("stop the run")
    if args.keep_agents and args.after_grades:
        raise CoralError("cannot stop both ways", "--keep-agents leaves all at work, --after-grades ends the agents")
    if args.timeout is None:
        args.timeout = math.inf if args.after_grades else LONGEST
    layout, begun = run_lookup.run_of(args), time.monotonic()
    name = layout.root.name
    pid = RunView(layout).supervisor
    if pid is None and _has_ended(layout):
        if args.json:
            _print_data(name, 0.0, stopped=True)
        else:
            print(f"{name} is not running")
        return 0
    supervisor = identify(pid) if pid else None
    end = _leave if args.keep_agents else _drain if args.after_grades else _stop
    finished = end(layout, sender, args)
    if finished and supervisor is not None:
        _await_exit(supervisor)
    passed = time.monotonic() - begun
    left = finished and args.keep_agents and not _has_ended(layout)
    stopped = finished and not left
    if args.json:
        _print_data(name, passed, stopped=stopped, left=left)
    elif stopped:
        print(f"{name} has stopped ({format.duration(passed)})\n  {command('resume', layout)}")
    elif left:
        print(f"{name} has no supervisor now; its agents and grades continue ({format.duration(passed)})")
        print(f"  `{command('resume', layout)}` takes them over, `{command('stop', layout)}` ends them")
    if finished:
        return 0
    print(f"coral: {name} has not stopped within {format.duration(args.timeout)}", file=sys.stderr)
    print(f"  it is still stopping: `{command('status', layout)}` shows what runs", file=sys.stderr)
    return EXIT_PENDING


def _has_ended(layout: Layout) -> bool:
    """Return whether the run has ended. If its journal is damaged, end the processes of the run, then raise
    CoralError."""
    # Imported here, since loading it takes as long as all else, and a supervisor is asked to stop before that.
    from coral.journal.fold import has_ended
    from coral.journal.segments import DamageError

    try:
        return has_ended(layout)
    except DamageError as error:
        raise _ended_without_supervisor(layout, str(error)) from error


def _ended_without_supervisor(layout: Layout, damage: str) -> CoralError:
    """End the processes of a run whose journal is damaged, and return the error that says so. CoralError if somebody
    supervises it."""
    from coral.runs.roll_back import end_processes
    from coral.supervisor.lock import hold_lock

    with hold_lock(layout.lock):
        ended = format.plural(end_processes(layout), "launch")
    hint = f"its processes ({ended}) were ended; `{command('resume', layout)}` goes on from the last good state"
    return CoralError(damage, hint)


def _stop(layout: Layout, sender: str, args: argparse.Namespace) -> bool:
    """Ask the supervisor to end the run; return whether it has ended in time. If the supervisor is gone without having
    ended the run (it was killed or it has left), agents may still be alive: then end the run in this process."""
    _ask(layout, sender, args.reason)
    print(f"stopping {layout.root.name} ...", file=sys.stderr)
    for _ in send_request.pauses(args.timeout):
        if RunView(layout).supervisor is None and (_has_ended(layout) or _end(layout, sender, args.reason)):
            return True
    return False


def _drain(layout: Layout, sender: str, args: argparse.Namespace) -> bool:
    """Ask the supervisor to end the run after the grades; return whether it has ended in time. CoralError if the
    supervisor refuses, or if there is none that could grade."""
    if RunView(layout).supervisor is None:
        hint = f"`{command('resume', layout)}` grades what waits; `{command('stop', layout)}` ends its processes"
        raise CoralError(f"cannot stop {layout.root.name} after its grades: nobody supervises it", hint)
    asked = send_request.send(layout, sender, {"type": "stop", "after_grades": True, "reason": args.reason})
    print(f"stopping {layout.root.name} when everything is graded ...", file=sys.stderr)
    for _ in send_request.pauses(args.timeout):
        answered = send_request.answer(layout, sender, asked, 0.0)
        if answered is not None and not answered.data.get("ok"):
            raise CoralError(answered.text("message"), answered.text("hint"))
        if RunView(layout).supervisor is None:
            return _has_ended(layout)
    return False


def _await_exit(supervisor: Identity) -> None:
    """Wait until the supervisor's process has exited, which it does soon after it has released the run's lock."""
    for _ in send_request.pauses(EXIT_SECONDS if supervisor.pid != os.getpid() else 0.0):
        if not is_alive(supervisor):
            return


def _ask(layout: Layout, sender: str, reason: str) -> None:
    """Ask by a request; if none can be written, by a signal, which cannot give the reason."""
    try:
        send_request.send(layout, sender, {"type": "stop", "reason": reason})
    except (OSError, send_request.UnwritableError) as error:
        if pid := RunView(layout).supervisor:
            from coral.processes.process import end_supervisor

            try:
                end_supervisor(pid)
            except OSError:
                raise CoralError(f"cannot stop {layout.root.name}: {error}", f"end process {pid} by SIGTERM") from error


def _end(layout: Layout, sender: str, reason: str) -> bool:
    """Supervise the run just to end it. Return False if another supervisor was faster, which then reads the request."""
    from coral.fleet.reasons import RunEnd, RunEndKind
    from coral.runs.roll_back import planned
    from coral.supervisor.lock import hold_lock, holder
    from coral.supervisor.loop import end_processes, supervise

    try:
        with hold_lock(layout.lock):
            plan = planned(layout)
        if plan is not None:  # a supervisor would not know all processes, nor all records
            damage = f"cannot stop {layout.root.name}: its journal is damaged ({plan.note.why})"
            raise _ended_without_supervisor(layout, damage)
        supervise(layout, stop=RunEnd(RunEndKind.REQUEST, detail=reason))
    except CoralError as error:
        if holder(layout.lock) is not None:
            return False
        if _is_sound(layout) or not (ended := end_processes(layout)):
            raise
        hint = f"its processes ({format.plural(ended, 'launch')}) were ended; its task has to be mended to resume it"
        raise CoralError(f"{error}", hint) from error
    with contextlib.suppress(OSError):
        send_request.take_back(layout, sender, "stop", "leave")
    return True


def _is_sound(layout: Layout) -> bool:
    """Return whether the run's task can be read. If it cannot, nobody can supervise the run."""
    from coral.config.load import load_frozen

    try:
        load_frozen(layout.task_file)
    except CoralError:
        return False
    return True


def _leave(layout: Layout, sender: str, args: argparse.Namespace) -> bool:
    """Ask the supervisor to leave; return whether it has left in time. CoralError if it refuses."""
    if RunView(layout).supervisor is None:
        send_request.take_back(layout, sender, "leave")
        return True
    asked = send_request.send(layout, sender, {"type": "leave", "reason": args.reason})
    for _ in send_request.pauses(args.timeout):
        answered = send_request.answer(layout, sender, asked, 0.0)
        if answered is not None and not answered.data.get("ok"):
            raise CoralError(answered.text("message"), answered.text("hint"))
        if RunView(layout).supervisor is None:
            send_request.take_back(layout, sender, "leave")  # it may have been killed before reading it
            return True
    return False


def _print_data(name: str, seconds: float, *, stopped: bool, left: bool = False) -> None:
    print_json({"run": name, "stopped": stopped, "left": left, "seconds": round(seconds, 3)}, None)
