"""Putting the agent together: memory, surroundings, tools, brain - and the handler that ends it at any moment."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from attempts.record import Direction
from coral.native.brain import BRAINS
from coral.native.interrupt import on_interrupt
from coral.native.loop import Loop, TurnEnd
from coral.native.options import Options
from coral.native.output import Output
from coral.native.run_view import Surroundings
from coral.native.search.explore import Explorer
from coral.native.snapshots import Keeper
from coral.native.toolbox import Toolbox

FAILED, USAGE = 1, 2
EXIT_CODES = {TurnEnd.NOTHING_TO_VARY: USAGE, TurnEnd.FAILURES: FAILED, TurnEnd.STEPS: 0}
PERSONA = "I search over the numbers and choices of the editable files; I use no model and follow no prose."
OBJECTIVE = 1500  # characters of the first prompt that are kept as the task


def begin(args: argparse.Namespace, options: Options, keeper: Keeper, output: Output) -> int:
    """Run the loop on the prompt that stands on standard input; the exit code."""
    run, agent = os.environ.get("CORAL_RUN", ""), os.environ.get("CORAL_AGENT", "")
    if not run or not agent or options.brain not in BRAINS:
        problem = f"there is no brain {options.brain!r}" if run and agent else "CORAL_RUN and CORAL_AGENT must be set"
        output.error(problem)
        print(f"coral.native: {problem}", file=sys.stderr)
        return USAGE
    toolbox = _toolbox(args, options, keeper, output, Path(run), agent)
    on_interrupt(keeper.save, toolbox.interrupt)
    prompt = sys.stdin.read()
    _remember_launch(keeper, prompt, output)
    try:
        end = Loop(keeper, output, BRAINS[options.brain](), toolbox, options.steps).run(prompt)
    finally:
        toolbox.explorer.close()
    output.end(_text(end, options.steps))
    if end is TurnEnd.NOTHING_TO_VARY:
        print("coral.native: the editable files hold no number and no choice that I could vary", file=sys.stderr)
    return EXIT_CODES[end]


def _text(end: TurnEnd, steps: int) -> str:
    match end:
        case TurnEnd.NOTHING_TO_VARY:
            return "there is nothing to vary"
        case TurnEnd.FAILURES:
            return "too many failures in a row"
        case TurnEnd.STEPS:
            return f"the limit of {steps} steps for one prompt"


def _toolbox(
    args: argparse.Namespace, options: Options, keeper: Keeper, output: Output, run: Path, agent: str
) -> Toolbox:
    clone = Path.cwd()
    direction = Direction(args.direction)
    surroundings = Surroundings(run, agent, clone, args.state, direction)
    explorer = Explorer(
        keeper=keeper,
        output=output,
        surroundings=surroundings,
        editable=args.editable,
        check=args.check,
        scratch=args.state / "scratch",
        seconds=options.seconds,
        check_seconds=options.check_seconds,
        maximize=direction is Direction.MAXIMIZE,
        seed=args.seed,
    )
    return Toolbox(keeper, output, surroundings, explorer)


def _remember_launch(keeper: Keeper, prompt: str, output: Output) -> None:
    if keeper.spoiled:
        output.error("the newest snapshot of memory cannot be read; I go on from the one before")
    memory = replace(keeper.memory, launches=keeper.memory.launches + 1)
    if not memory.blocks:
        memory = memory.edit("persona", PERSONA).edit("task", _objective(prompt))
    keeper.memory = memory
    keeper.save()


def _objective(prompt: str) -> str:
    """What the first prompt says under its heading `The objective`, or how it begins."""
    _, found, rest = prompt.partition("## The objective")
    return (rest.partition("\n## ")[0] if found else prompt).strip()[:OBJECTIVE]
