"""The score over time as plain data and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from coral.api.rows import Rows
from coral.reading.curve import read_curve
from coral.reading.run_view import RunView
from coral.reading.timeline import read_figures
from coral.views.curve import BestStep, Curve, Point

if TYPE_CHECKING:
    import pandas

_STEP = ("at", "number", "value")
_POINT = ("at", "number", "agent", "verdict", "score")


@dataclass(frozen=True)
class RunCurve(Curve):
    """The best of the present epoch over time, in seconds of the run's clock, which stops while nobody supervises.

    `steps`: the fleet's proven best, first the seed if `has_seed`. `own`: each agent's own best. `points`: every
    attempt of an agent. `end`: the clock now, or when the run ended. `best`: the last of the steps; `to_best`: when
    that was proven, None while it is the seed.
    """

    steps: Rows[BestStep] = field(default_factory=lambda: _steps(()))
    own: Mapping[str, Rows[BestStep]] = field(default_factory=dict)
    points: Rows[Point] = field(default_factory=lambda: _points(()))

    def data(self) -> dict[str, object]:
        """Return the curve as plain data, as `--json` prints it."""
        own = {agent: steps.data() for agent, steps in self.own.items()}
        parts = {"steps": self.steps.data(), "own": own, "points": self.points.data()}
        figures = {"end": self.end, "best": self.best, "to_best": self.to_best, "has_seed": self.has_seed}
        return {"direction": self.direction, **figures, **parts}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with one row for each step. `agent`: whose own best rose; empty if the fleet's best did."""
        rows = [("", step) for step in self.steps]
        rows += [(agent, step) for agent, steps in self.own.items() for step in steps]
        return Rows(rows, ("agent", *_STEP), lambda row: {"agent": row[0], **asdict(row[1])}).to_pandas()


def curve_of_run(view: RunView) -> RunCurve:
    found = read_curve(view, read_figures(view.layout).clocks)
    own = {agent: _steps(steps) for agent, steps in found.own.items()}
    return RunCurve(found.direction, _steps(found.steps), own, _points(found.points), found.end, found.has_seed)


def _steps(steps: Sequence[BestStep]) -> Rows[BestStep]:
    return Rows(steps, _STEP, asdict)


def _points(points: Sequence[Point]) -> Rows[Point]:
    return Rows(points, _POINT, asdict)
