"""Measures grades on a Ray cluster of this machine: one that does nothing against one without the cluster, many on one
node and on four, and how soon a node that joins has begun one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from benchmarks import evals, machine, table
from benchmarks.arena import Arena, BenchmarkError, agents_run, arena, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.figure import Check, Target, check, median
from benchmarks.ray_nodes import RayNodes, ray_nodes
from benchmarks.results import Result

NAME = "cluster"
MORE, SHARE, JOIN = Target(median=25), Target(median=0.275), Target(median=10)
LOCAL, RAY = "this machine", "cluster"
PARTS = {**evals.PARTS}
RECORD = "whole"  # from `coral eval` to the record
VALUES, QUICK_VALUES = 60, 4
BLOCK = 10  # values that are measured here before as many are measured there
AGENTS, QUICK_AGENTS = 50, 8
EACH, QUICK_EACH = 8, 2  # grades of an agent
SECONDS = 1.0  # of each of these grades
SLOTS, NODES = 1, 4  # of a node; nodes
ONE, FOUR, JOINED = "one node", "four nodes", "joined"
PATIENCE = 900.0
EMPTY, MANY = "empty", "many"  # the parts of this benchmark
SETTINGS: dict[str, dict[str, float]] = {
    EMPTY: {"values": VALUES},
    MANY: {"grades": AGENTS * EACH, "seconds": SECONDS, "slots": SLOTS},
}


def measure(ask: Ask) -> Iterable[Result]:
    if find_spec("ray") is None:
        raise BenchmarkError("the package ray is missing: pip install -e '.[ray]'")
    for part, work in {EMPTY: _without_work, MANY: _much_work}.items():
        if ask.only in ("", part):
            here = machine.here()
            with ray_nodes() as nodes:
                nodes.add_node(SLOTS)
                yield Result(f"{NAME}-{part}", machine.today(), here, SETTINGS[part], work(nodes, ask))


def full() -> Mapping[str, Full]:
    parts = [f"{where}: {part}" for where in (LOCAL, RAY) for part in (RECORD, *PARTS)]
    many = {ONE: 1, FOUR: 1, JOINED: NODES - 1}
    series = {EMPTY: dict.fromkeys(parts, VALUES), MANY: many}
    return {f"{NAME}-{part}": Full(SETTINGS[part], series[part]) for part in (EMPTY, MANY)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    found = []
    if (result := results.get(f"{NAME}-{EMPTY}")) is not None:
        more = median(result.series[f"{RAY}: {RECORD}"]) - median(result.series[f"{LOCAL}: {RECORD}"])
        found.append(check("`coral eval` to the record, on a cluster more than here", [more], MORE, "ms", _WHY_MORE))
    if (result := results.get(f"{NAME}-{MANY}")) is not None:
        pairs = zip(result.series[FOUR], result.series[ONE], strict=True)
        share = [round(four / one, 4) for four, one in pairs]
        found.append(check(f"{AGENTS * EACH} grades, four nodes to one", share, SHARE, "of the time", _WHY_SHARE))
        found.append(check("a node begins to its first grade", result.series[JOINED], JOIN, "s", _WHY_JOIN))
    return found


def section(results: Mapping[str, Result]) -> list[str]:
    lines = ["## Grades on a cluster"]
    if (result := results.get(f"{NAME}-{EMPTY}")) is not None:
        labels = {}
        for where in (LOCAL, RAY):
            labels[f"{where}: {RECORD}"] = f"**{where}**"
            labels |= {f"{where}: {part}": f"... {text}" for part, text in PARTS.items()}
        lines += ["", _ABOUT, "", *table.head("ms", "an empty grade"), *table.rows(labels, result)]
        lines += ["", table.origin(result, f"{NAME} --only {EMPTY}")]
    if (result := results.get(f"{NAME}-{MANY}")) is not None:
        labels = {ONE: f"{AGENTS * EACH} grades, one node", FOUR: f"{AGENTS * EACH} grades, four nodes"}
        labels[JOINED] = "a node begins to its first grade"
        lines += ["", _ABOUT_MANY, "", *table.head("s"), *table.rows(labels, result)]
        lines += ["", table.origin(result, f"{NAME} --only {MANY}")]
    return lines


_ABOUT = """A Ray cluster on this machine: a head and one node, which share its processors with all else. One agent runs
`coral eval` in a run whose grades are Python functions on this machine, and another in a run whose grades are on the
cluster; they take turns. What counts is the time from the start of the command to the record. The difference of the
medians varies from run to run: in seven that followed each other it was 17 to 27 ms, and 20 in the middle."""

_ABOUT_MANY = f"""Then {AGENTS} agents submit {EACH} attempts each. Their grades wait until all are there, and
{SECONDS:g} s more. A node has room for {SLOTS}. First there is one node; for the second time three others join, one
after the other, while grades wait for room. Their seconds count from the start of `ray start`."""

_WHY_MORE = "Compare the parts: what differs is between the submission and the record."
_WHY_SHARE = "All nodes share the processors of this machine, which start the processes of every grade."
_WHY_JOIN = "Most of it are the processes of a Ray node, which start on a busy machine."


def _without_work(nodes: RayNodes, ask: Ask) -> dict[str, list[float]]:
    count = QUICK_VALUES if ask.quick else VALUES
    rows: dict[str, list[dict[str, float]]] = {LOCAL: [], RAY: []}
    function = ("grader.command=", "grader.entry=grade.py:grade")
    with arena() as here, arena() as there:
        runs = {LOCAL: (here, evals.begin(here, function)), RAY: (there, evals.begin(there, (*function, *_on(nodes))))}
        for place, run in runs.values():
            evals.measured(run, place, 0, 0, 2)  # Ray starts its processes with the first
        while (done := len(rows[RAY])) < count:
            ask.say(f"`coral eval` with empty grades, {done} of {count} times")
            for where, (place, run) in runs.items():
                rows[where] += evals.measured(run, place, 0, 2 + done, min(BLOCK, count - done))
    return {
        f"{where}: {part}": [_to_record(row) if part == RECORD else row[part] for row in found]
        for where, found in rows.items()
        for part in (RECORD, *PARTS)
    }


def _to_record(row: Mapping[str, float]) -> float:
    return round(row[evals.WHOLE] - row["return"], 3)


def _much_work(nodes: RayNodes, ask: Ask) -> dict[str, list[float]]:
    series: dict[str, list[float]] = {ONE: [], JOINED: [], FOUR: []}
    with _held(nodes, ask) as place:
        series[ONE].append(_worked_off(place, ask))
    with _held(nodes, ask) as place:
        for _ in range(NODES - 1):
            series[JOINED].append(_joined(nodes, place))
        series[FOUR].append(_worked_off(place, ask))
    return series


@contextmanager
def _held(nodes: RayNodes, ask: Ask) -> Iterator[Arena]:
    """Start a run whose agents have submitted everything, and whose grades wait."""
    agents, each = _numbers(ask)
    with arena() as place:
        task = place.small_task()
        path = task / "task.yaml"
        path.write_text(path.read_text().replace("  command: sh $CORAL_PRIVATE/grade.sh\n", ""))
        ask.say(f"{agents} agents submit {each} attempts each")
        place.start(
            task, "agents.runtime=command", agents_run("several.sh", str(each)), f"agents.count={agents}",
            f"heartbeats=[{evals.RARE}]", "grader.entry=waiting.py:grade", f"grader.args={{seconds: {SECONDS}}}",
            "grader.timeout=3600", f"grader.slots={4 * NODES * SLOTS}", *_on(nodes),
            "grader.ray.resources={num_cpus: 0, custom: {slot: 1}}",
        )  # fmt: skip
        notes = place.notes
        wait_until(
            lambda: sum(path.read_text().count("\n") for path in notes.glob("submitted-*")) == agents * each,
            PATIENCE, "the last submission",
        )  # fmt: skip
        wait_until(lambda: _begun(place) >= SLOTS, PATIENCE, "the first grade")
        yield place


def _on(nodes: RayNodes) -> tuple[str, str]:
    return "grader.executor=ray", f"grader.ray.address={nodes.address}"


def _numbers(ask: Ask) -> tuple[int, int]:
    return (QUICK_AGENTS, QUICK_EACH) if ask.quick else (AGENTS, EACH)


def _begun(place: Arena) -> int:
    return len(list(place.notes.glob("began-*")))


def _joined(nodes: RayNodes, place: Arena) -> float:
    """Return the seconds from the start of a node until a grade that waited has begun there."""
    before, began = _begun(place), time.monotonic()
    nodes.begin_node(SLOTS)
    wait_until(lambda: _begun(place) > before, PATIENCE, "the first grade of a new node")
    found = round(time.monotonic() - began, 3)
    wait_until(lambda: _begun(place) == before + SLOTS, PATIENCE, "as many grades as the node has room for")
    return found


def _worked_off(place: Arena, ask: Ask) -> float:
    """Let the grades go on; return the seconds until the last has ended."""
    agents, each = _numbers(ask)
    ask.say(f"{agents * each} grades that wait for {SECONDS:g} s")
    began = time.monotonic()
    (place.notes / "release").touch()
    wait_until(lambda: len(list(place.notes.glob("ended-*"))) == agents * each, PATIENCE, "the last grade")
    return round(time.monotonic() - began, 3)
