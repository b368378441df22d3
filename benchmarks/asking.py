"""Measures how long a launch of the built-in agent with a model takes until its first request has come."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Mapping

from benchmarks import machine, table
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check
from benchmarks.model_place import READ, SECONDS, model_place, scripted_model
from benchmarks.results import Result

NAME = "asking"
LAUNCHES, QUICK_LAUNCHES = 40, 5
STEPS = 12  # that the session has made before it is resumed
BARE, NEW, RESUMED = "python -c pass", "a new session", "a session that is resumed"
TARGET = Target(median=150)


def measure(ask: Ask) -> Iterable[Result]:
    here, launches = machine.here(), QUICK_LAUNCHES if ask.quick else LAUNCHES
    ask.say(f"{launches} first requests of new sessions, and as many of a resumed one")
    yield Result(NAME, machine.today(), here, {"steps": STEPS}, _first_requests(launches))


def full() -> Mapping[str, Full]:
    return {NAME: Full({"steps": STEPS}, dict.fromkeys((BARE, NEW, RESUMED), LAUNCHES))}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    return [check(f"first request to a model, {kind}", series[kind], TARGET, "ms", _WHY) for kind in (NEW, RESUMED)]


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## The first request to a model", "", _ABOUT, "", *table.head("ms")]
    lines += [table.row(kind, result.series[kind]) for kind in (NEW, RESUMED)]
    return [*lines, table.row(f"`{BARE}`", result.series[BARE]), "", table.origin(result)]


_ABOUT = f"""The built-in agent with the brain `llm`: from the start of its process until its first request has come to
a scripted model on this machine, without TLS. The resumed session has {STEPS} steps behind it. An interpreter that does
nothing is measured in turn."""

_WHY = "Nearly all of it is imports: compare the bare interpreter, on the same machine."


def _first_requests(launches: int) -> dict[str, list[float]]:
    model = scripted_model()
    series: dict[str, list[float]] = {BARE: [], NEW: [], RESUMED: []}
    script = [model.Step(calls=[READ], times=STEPS), model.Step(error="denied", times=3 * launches)]
    with model_place(model.ModelServer(script)) as place:
        place.launch("go", session="old", resume=False).wait(SECONDS)
        for turn in range(launches):
            series[BARE].append(_bare())
            for kind, session in ((NEW, f"new-{turn}"), (RESUMED, "old")):
                asked = len(place.server.asked)
                began = time.monotonic()
                place.launch("go", session=session, resume=kind == RESUMED).wait(SECONDS)
                series[kind].append(round(1000 * (place.server.asked[asked].at - began), 3))
    return series


def _bare() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return round(1000 * (time.monotonic() - began), 3)
