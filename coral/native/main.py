"""Runs the built-in agent: reads the arguments, goes on until an interrupt, and returns an exit code that says why.

An interrupt may come at any moment. Its handler saves the memory as it stands, which is a value and so always whole,
and ends the process. It is set three times, each time with more to do: at the first line, when there is a memory, and
when there are children to end. Slow modules are imported in the functions, so that they do not delay what comes before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coral.native.interrupt import on_interrupt
from coral.native.output import Output

if TYPE_CHECKING:
    from coral.native.memory import AgentMemory
    from coral.native.options import Options
    from coral.native.snapshots import Snapshots

EXIT_FAILED, EXIT_USAGE, EXIT_UNKNOWN_SESSION = 1, 2, 4  # the runtime `native` reads these


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
    parser.add_argument("--model", default="")
    return parser.parse_args(words)


def main() -> int:
    """Run the process; return its exit code."""
    args = arguments(sys.argv[1:])
    output = Output()
    from coral.native.options import LLM, Options, brain_of

    try:
        data = json.loads(args.options)
        if brain_of(data) == LLM:
            return _run_llm(args, data, output)
        options = Options.read(data)
    except ValueError as problem:
        return _refuse(output, f"cannot read the options: {problem}")
    from coral.native.memory import AgentMemory
    from coral.native.snapshots import Snapshots

    begin = Snapshots.resume if args.resume else Snapshots.create
    try:
        snapshots = begin(args.state, args.session, AgentMemory)
    except ValueError as problem:
        return _refuse(output, str(problem))
    if snapshots is None:
        print(f"coral.native: no such session: {args.session}", file=sys.stderr)
        return EXIT_UNKNOWN_SESSION
    on_interrupt(snapshots.save)
    output.session(args.session)
    return _run_loop(args, options, snapshots, output)


def _run_llm(args: argparse.Namespace, data: object, output: Output) -> int:
    """Run the brain that asks a model. What it needs is imported only here."""
    from coral.native.llm.main import run
    from coral.native.llm.settings import LlmOptions

    return run(args, LlmOptions.read(data), output)


def _run_loop(args: argparse.Namespace, options: Options, snapshots: Snapshots[AgentMemory], output: Output) -> int:
    """Run the loop on the prompt that stands on standard input; return the exit code."""
    from attempts.record import Direction  # these take longer to import than everything before
    from coral.native.brain import find_brain
    from coral.native.loop import Loop, TurnEnd
    from coral.native.options import missing_library
    from coral.native.run_view import AgentRunView
    from coral.native.search.explore import Explorer
    from coral.native.toolbox import Toolbox

    run_folder, agent = os.environ.get("CORAL_RUN", ""), os.environ.get("CORAL_AGENT", "")
    if not run_folder or not agent:
        return _refuse(output, "CORAL_RUN and CORAL_AGENT must be set")
    try:
        brain = find_brain(options.brain)()
    except ValueError as problem:
        return _refuse(output, str(problem))
    if library := missing_library():
        return _refuse(output, f"{library} is not installed; `coral doctor` says how to install it")
    run_view = AgentRunView(Path(run_folder), agent, Path.cwd(), args.state, Direction(args.direction))
    explorer = Explorer(snapshots, output, run_view, options, args.editable, args.check, args.seed)
    toolbox = Toolbox(snapshots, output, run_view, explorer)
    on_interrupt(snapshots.save, toolbox.interrupt)
    prompt = sys.stdin.read()
    _remember_launch(snapshots, output)
    try:
        end = Loop(snapshots, output, brain, toolbox, options.steps).run(prompt)
    finally:
        toolbox.explorer.close()
    code, text = {
        TurnEnd.NOTHING_TO_VARY: (EXIT_USAGE, "the editable files hold no number and no choice that I could vary"),
        TurnEnd.FAILURES: (EXIT_FAILED, "too many failures in a row"),
        TurnEnd.STEPS: (0, f"the limit of {options.steps} steps for one prompt"),
    }[end]
    output.end(text)
    if code == EXIT_USAGE:
        print(f"coral.native: {text}", file=sys.stderr)
    return code


def _remember_launch(snapshots: Snapshots[AgentMemory], output: Output) -> None:
    if snapshots.damaged:
        output.error("the newest snapshot of memory cannot be read; I go on from the one before")
    snapshots.memory = replace(snapshots.memory, launches=snapshots.memory.launches + 1)
    snapshots.save()


def _refuse(output: Output, message: str) -> int:
    output.error(message)
    print(f"coral.native: {message}", file=sys.stderr)
    return EXIT_USAGE
