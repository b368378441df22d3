"""Runs the built-in agent: reads the arguments, goes on until an interrupt, and returns an exit code that says why.

An interrupt may come at any moment. Its handler saves the memory as it stands, which is a value and so always whole,
and ends the process. It is set at the first line, and with more to do when the memory may change and there are children
to end. Slow modules are imported in the functions, so that they do not delay what comes before.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coral.native.interrupt import on_interrupt
from coral.native.output import Output

if TYPE_CHECKING:
    from coral.native.brain import Brain
    from coral.native.memory import AgentMemory
    from coral.native.options import Options
    from coral.native.snapshots import Held, Snapshots

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
    args, output = arguments(sys.argv[1:]), Output()
    from coral.native.options import LLM, Options, brain_of, missing_library

    try:
        data = json.loads(args.options)
        if brain_of(data) == LLM:
            from coral.native.llm.main import run  # only here: a search does without, and without what it imports
            from coral.native.llm.output import LlmOutput
            from coral.native.llm.settings import LlmOptions

            return run(args, LlmOptions.read(data), LlmOutput())
        options = Options.read(data)
        if library := missing_library():
            raise ValueError(f"{library} is not installed; `coral doctor` says how to install it")
        from coral.native.memory import AgentMemory
        from coral.native.prompt import heartbeat_sections

        snapshots = open_memory(args, AgentMemory)
        if snapshots is None:
            return EXIT_UNKNOWN_SESSION
        snapshots.memory = snapshots.memory.receive(heartbeat_sections(sys.stdin.read()))
        snapshots.save()
        output.session(args.session)  # which acknowledges the prompt
        from coral.native.brain import find_brain  # takes longer to import than everything before

        brain = find_brain(options.brain)()
    except ValueError as problem:
        return _refuse(output, f"cannot begin: {problem}")
    if not os.environ.get("CORAL_RUN") or not os.environ.get("CORAL_AGENT"):
        return _refuse(output, "CORAL_RUN and CORAL_AGENT must be set")
    return _run_loop(args, options, snapshots, output, brain)


def open_memory(args: argparse.Namespace, kind: type[Held]) -> Snapshots[Held] | None:
    """Begin or resume the session that the arguments name; print and return None if there is none to resume. ValueError
    if that can be no session."""
    from coral.native.snapshots import Snapshots
    from workspace.layout import Layout

    if not args.resume:
        return Snapshots.create(args.state, args.session, kind)
    run = os.environ.get("CORAL_RUN")
    snapshots = Snapshots.resume(args.state, args.session, kind, Layout(Path(run)).attempts if run else None)
    if snapshots is None:
        print(f"coral.native: no such session: {args.session}", file=sys.stderr)
    return snapshots


def _run_loop(
    args: argparse.Namespace, options: Options, snapshots: Snapshots[AgentMemory], output: Output, brain: Brain
) -> int:
    """Run the agent's loop; return the exit code of the process."""
    from attempts.record import Direction
    from coral.native.loop import Loop, TurnEnd
    from coral.native.run_view import AgentRunView
    from coral.native.search.explore import Explorer
    from coral.native.workbench import SearchBench

    run, agent = Path(os.environ["CORAL_RUN"]), os.environ["CORAL_AGENT"]
    view = AgentRunView(run, agent, Path.cwd(), args.state, Direction(args.direction))
    explorer = Explorer(snapshots, output, view, options, args.editable, args.check, args.seed)
    bench = SearchBench(snapshots, output, view, explorer)
    on_interrupt(snapshots.save, bench.interrupt)
    if snapshots.problem:
        output.error(f"my newest memory is set aside, {snapshots.problem}; I trust the records")
    try:
        end = Loop(bench, brain, options.steps).run()
    finally:
        explorer.close()
    if end is TurnEnd.NOTHING_TO_VARY:
        return _refuse(output, end)
    output.end(end)
    return EXIT_FAILED if end is TurnEnd.FAILURES else 0


def _refuse(output: Output, message: str) -> int:
    output.error(message)
    print(f"coral.native: {message}", file=sys.stderr)
    return EXIT_USAGE
