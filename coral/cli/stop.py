"""`coral stop`: ask the supervisor to end the run, and stay until it has: when this returns 0, nothing of it runs."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys

from coral.cli import request, where, words
from coral.cli.program import program
from coral.cli.reading import Reading
from coral.errors import CoralError
from workspace.layout import Layout

LONGEST = 120.0  # the graces of a deaf fleet are seconds; a full stop takes less


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="stopped by the operator", help="what the records say about it")
    parser.add_argument("--timeout", type=float, default=LONGEST, metavar="S", help="seconds to wait for its end")
    parser.add_argument("--json", action="store_true", help="for programs: run, stopped, seconds")
    where.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    sender = request.as_operator("stop the run")
    from coral.launch import has_ended, supervise

    layout = where.run_of(args)
    name = layout.root.name
    if Reading(layout).supervisor is None and has_ended(layout):
        print(_data(name, 0.0) if args.json else f"{name} is not running")
        return 0
    asked = _ask(layout, sender, args.reason)
    print(f"stopping {name} ...", file=sys.stderr)
    if Reading(layout).supervisor is None:
        # Its supervisor was killed, its agents may live on: take the run over just to end it.
        supervise(layout, stop="" if asked else args.reason)
    for passed in request.pauses(args.timeout):
        if Reading(layout).supervisor is None:
            said = f"{name} has stopped ({words.span(passed)})\n  {program()} resume{where.flag(layout)}"
            print(_data(name, passed) if args.json else said)
            return 0
    if args.json:
        print(_data(name, args.timeout, stopped=False))
    print(f"coral: {name} has not stopped within {words.span(args.timeout)}", file=sys.stderr)
    print(f"  `{program()} status` shows what still runs; it goes on stopping", file=sys.stderr)
    return 2


def _ask(layout: Layout, sender: str, reason: str) -> bool:
    """By a request; where none can be written, by a signal, which cannot say the reason. Whether it was a request."""
    try:
        request.send(layout, sender, {"type": "stop", "reason": reason})
    except OSError as error:
        if pid := Reading(layout).supervisor:
            try:
                os.kill(pid, signal.SIGTERM)
            except OSError:
                raise CoralError(f"cannot stop {layout.root.name}: {error}", f"end process {pid} by SIGTERM") from error
        return False
    return True


def _data(name: str, seconds: float, *, stopped: bool = True) -> str:
    return json.dumps({"run": name, "stopped": stopped, "seconds": round(seconds, 3)})
