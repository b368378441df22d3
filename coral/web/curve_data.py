"""The data of the chart of scores over time: the best, one agent's own best, and the attempts as points."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from attempts.record import Kind
from coral.errors import CoralError
from coral.views.curve import BestStep, Curve, Point, linear_axis
from coral.web.reading import PublishedClocks, RunView, read_sample

MOST_POINTS = 4000  # more would cover each other on any screen
KEPT = 8  # curves, and clocks of runs

Json = dict[str, object]
K = TypeVar("K")
V = TypeVar("V")
Key = tuple[Path, str]  # a run's folder, and the agent whose curve it is


class Curves:
    """A cache of the curves that pages asked for last. A curve is made again after another attempt was published, and
    every open page asks for it then. Only one is made at a time, to save memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clocks: dict[Path, PublishedClocks] = {}
        self._made: dict[Key, tuple[tuple[int, int], Json]] = {}

    def get(self, view: RunView, asked: Mapping[str, str]) -> Json:
        """Return the fleet's curve or, with the parameter `agent`, that agent's. CoralError if there is no such
        agent."""
        agent = asked.get("agent", "")
        if agent and agent not in view.agents():
            raise CoralError(f"cannot draw the curve of {agent[:80]!r}: there is no such agent", "choose another")
        with self._lock:
            seen = view.layout.attempts.stat()
            state, key = (seen.st_ino, seen.st_mtime_ns), (view.layout.root, agent)
            known, made = self._made.pop(key, (None, Json()))
            made = made if known == state else self._curve(view, agent)
            _keep(self._made, key, (state, made))
            return made

    def _curve(self, view: RunView, agent: str) -> Json:
        root = view.layout.root
        clocks = self._clocks.pop(root, None) or PublishedClocks(view.layout)
        _keep(self._clocks, root, clocks)
        clocks.update()
        found, left_out = read_sample(view, clocks.of, MOST_POINTS, agent)
        return {
            "direction": found.direction,
            "end": found.end,
            "steps": _steps(found.steps),
            "own": {name: _steps(steps) for name, steps in found.own.items()},
            "points": [_point(point) for point in found.points],
            "left_out": left_out,
            "has_seed": found.has_seed,
            "axis": _axis(found, agent),
        }


def _keep(held: dict[K, V], key: K, value: V) -> None:
    """Put the value at the end of the cache, and drop the first one if there are more than KEPT."""
    held[key] = value
    if len(held) > KEPT:
        del held[next(iter(held))]


def point(view: RunView, number: int, clock: float) -> Json | None:
    """Return a published attempt as a point of the curve; None if it is none, such as a confirmation. `clock`: when it
    was published."""
    found = view.attempt_or_none(number)
    if found is None or not found.agent or found.kind not in (Kind.REAL, Kind.TUNE):
        return None
    return _point(Point(clock, found.number, found.agent, found.verdict, found.score))


def _axis(curve: Curve, agent: str) -> Json | None:
    """Return the linear axis; None if there is nothing to draw. `begins`: the step at which the axis begins, if that is
    not the first."""
    found = linear_axis(curve, (agent,) if agent else ())
    if found is None:
        return None
    begins = None if found.begins is None else _steps([found.begins])[0]
    return {"low": found.low, "high": found.high, "begins": begins}


def _steps(steps: Sequence[BestStep]) -> list[list[float]]:
    return [[step.at, step.value, step.number] for step in steps]


def _point(shown: Point) -> Json:
    return {
        "at": shown.at,
        "number": shown.number,
        "agent": shown.agent,
        "verdict": shown.verdict,
        "score": shown.score,
    }
