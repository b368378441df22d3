"""The process: arguments in, a session that goes on until it is interrupted, an exit code that says how it ended.

An interrupt may come at any moment. The handler saves the memory as it stands - a value, so always whole - and ends the
process itself: nothing is unwound, so nothing half done can be written on the way out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from coral.native.interrupt import on_interrupt
from coral.native.output import Output

USAGE, UNKNOWN_SESSION = 2, 4  # the runtime `native` reads these


def arguments(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m coral.native", description="The built-in agent of Coral.")
    parser.add_argument("--session", required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--editable", nargs="+", default=["**/*"])
    parser.add_argument("--check", default="")
    parser.add_argument("--direction", choices=("maximize", "minimize"), default="maximize")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--options", default="{}")
    return parser.parse_args(words)


def run(words: Sequence[str]) -> int:
    """The whole life of the process; its exit code."""
    args = arguments(words)
    output = Output()
    from coral.native.options import Options

    try:
        options = Options.read(json.loads(args.options))
    except ValueError as problem:
        return _refuse(output, f"cannot read the options: {problem}")
    from coral.native.snapshots import Keeper

    try:
        keeper = Keeper.resume(args.state, args.session) if args.resume else Keeper.create(args.state, args.session)
    except ValueError as problem:
        return _refuse(output, str(problem))
    if keeper is None:
        print(f"coral.native: no such session: {args.session}", file=sys.stderr)
        return UNKNOWN_SESSION
    on_interrupt(keeper.save)
    output.session(args.session)
    from coral.native.start import begin  # the rest takes longer to import than all of the above

    return begin(args, options, keeper, output)


def _refuse(output: Output, message: str) -> int:
    output.error(message)
    print(f"coral.native: {message}", file=sys.stderr)
    return USAGE


def main() -> int:
    return run(sys.argv[1:])
