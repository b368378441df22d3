"""`coral stop`: ask the supervisor to end the run, and stay until it has: when this returns 0, nothing of it runs.

With `--keep-agents` it is the supervisor alone that ends; agents and grades go on, and `coral resume` takes them over.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time

from coral.cli.parser import finite
from coral.cli.run_data import run_lookup, send_request
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.program_name import program
from coral.errors import CoralError
from coral.views import format
from workspace.layout import Layout

LONGEST = 120.0  # the graces of a deaf fleet are seconds; a full stop takes less


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep-agents", action="store_true", help="end the supervisor alone; agents go on until `coral resume`"
    )
    parser.add_argument("--reason", default="", help="what the records say about it")
    parser.add_argument("--timeout", type=finite, default=LONGEST, metavar="S", help="seconds to wait for its end")
    parser.add_argument("--json", action="store_true", help="for programs: run, stopped, left, seconds")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("stop the run")
    layout, begun = run_lookup.run_of(args), time.monotonic()
    name = layout.root.name
    if RunView(layout).supervisor is None and _has_ended(layout):
        print(_data(name, 0.0, stopped=True) if args.json else f"{name} is not running")
        return 0
    finished = _leave(layout, sender, args) if args.keep_agents else _stop(layout, sender, args)
    passed = time.monotonic() - begun
    left = finished and args.keep_agents and not _has_ended(layout)
    stopped = finished and not left
    if args.json:
        print(_data(name, passed, stopped=stopped, left=left))
    elif stopped:
        print(f"{name} has stopped ({format.duration(passed)})\n  {program()} resume{run_lookup.flag(layout)}")
    elif left:
        flag, coral = run_lookup.flag(layout), program()
        print(f"{name} is left: its agents and grades go on without a supervisor ({format.duration(passed)})")
        print(f"  `{coral} resume{flag}` takes them over, `{coral} stop{flag}` ends them")
    if finished:
        return 0
    print(f"coral: {name} has not stopped within {format.duration(args.timeout)}", file=sys.stderr)
    print(f"  `{program()} status` shows what still runs; it goes on stopping", file=sys.stderr)
    return 2


def _has_ended(layout: Layout) -> bool:
    # Only here: what reads a journal takes as long to load as all the rest, and a run at work is asked to stop before.
    from coral.journal.status import has_ended

    return has_ended(layout)


def _stop(layout: Layout, sender: str, args: argparse.Namespace) -> bool:
    """Whether the run has ended in time. A supervisor that is gone without having ended it is replaced, just for that:
    it was killed, perhaps while it was stopping, or it has left; its agents may live on."""
    _ask(layout, sender, args.reason)
    print(f"stopping {layout.root.name} ...", file=sys.stderr)
    for _ in send_request.pauses(args.timeout):
        if RunView(layout).supervisor is None and (_has_ended(layout) or _end(layout, sender, args.reason)):
            return True
    return False


def _ask(layout: Layout, sender: str, reason: str) -> None:
    """By a request; where none can be written, by a signal, which cannot say the reason."""
    try:
        send_request.send(layout, sender, {"type": "stop", "reason": reason})
    except OSError as error:
        if pid := RunView(layout).supervisor:
            from coral.processes.process import end_supervisor

            try:
                end_supervisor(pid)
            except OSError:
                raise CoralError(f"cannot stop {layout.root.name}: {error}", f"end process {pid} by SIGTERM") from error


def _end(layout: Layout, sender: str, reason: str) -> bool:
    """Supervise the run just to end it; False where somebody else was faster, who reads the request."""
    from coral.fleet.reasons import RunEnd, RunEndKind
    from coral.supervisor.lock import holder
    from coral.supervisor.loop import supervise

    try:
        supervise(layout, stop=RunEnd(RunEndKind.REQUEST, detail=reason))
    except CoralError:
        if holder(layout.lock) is None:
            raise
        return False
    with contextlib.suppress(OSError):
        send_request.take_back(layout, sender, "stop", "leave")
    return True


def _leave(layout: Layout, sender: str, args: argparse.Namespace) -> bool:
    """Whether nobody supervises the run any more. CoralError if its supervisor refuses."""
    if RunView(layout).supervisor is None:
        send_request.take_back(layout, sender, "leave")
        return True
    asked = send_request.send(layout, sender, {"type": "leave", "reason": args.reason})
    for _ in send_request.pauses(args.timeout):
        answered = send_request.answer(layout, sender, asked, 0.0)
        if answered is not None and not answered.data.get("ok"):
            raise CoralError(answered.text("message"), answered.text("hint"))
        if RunView(layout).supervisor is None:
            send_request.take_back(layout, sender, "leave")  # of one that was killed before it read this
            return True
    return False


def _data(name: str, seconds: float, *, stopped: bool = False, left: bool = False) -> str:
    return json.dumps({"run": name, "stopped": stopped, "left": left, "seconds": round(seconds, 3)})
