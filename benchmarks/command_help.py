"""Measures how long `coral eval --help` takes: the time before any work, which agents spend thousands of times."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks import machine, table
from benchmarks.arena import BenchmarkError
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result

NAME = "help"
TARGET = Target(median=60)
VALUES, QUICK_VALUES = 100, 10
BARE, HELP = "python -c pass", "coral eval --help"


def measure(ask: Ask) -> Iterable[Result]:
    here, count = machine.here(), QUICK_VALUES if ask.quick else VALUES
    coral = Path(sys.executable).parent / "coral"
    if not os.access(coral, os.X_OK):
        raise BenchmarkError(f"there is no `coral` beside {Path(sys.executable).name}; pip install -e .")
    programs = {BARE: [sys.executable, "-c", "pass"], HELP: [str(coral), "eval", "--help"]}
    ask.say(f"{count} times `{HELP}`")
    series: dict[str, list[float]] = {BARE: [], HELP: []}
    # One after the other, in turn: what slows the machine down for a while slows both.
    for _ in range(count):
        for name, command in programs.items():
            series[name].append(_time(command))
    yield Result(NAME, machine.today(), here, {"values": count}, series)


def full() -> Mapping[str, Full]:
    series = {BARE: VALUES, HELP: VALUES}
    return {NAME: Full({"values": VALUES}, series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    return [check(f"`{HELP}`", results[NAME].series[HELP], TARGET, "ms", _WHY)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## `coral eval --help`", "", _ABOUT, "", *table.head("ms")]
    lines += [table.row(f"`{name}`", result.series[name]) for name in (HELP, BARE)]
    return [*lines, "", table.origin(result)]


_ABOUT = """The price of the command line itself, next to that of an interpreter that does nothing, measured in
turn. Neither pydantic, rich, jinja2, git nor asyncio is imported for it."""

_WHY = "Most of it is the interpreter itself and argparse: compare the bare interpreter below, on the same machine."


def _time(command: list[str]) -> float:
    began = time.perf_counter_ns()
    subprocess.run(command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return round((time.perf_counter_ns() - began) / 1e6, 3)
