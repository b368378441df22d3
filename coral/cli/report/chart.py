"""Draws a run's curve as SVG, without scripts and with classes instead of styles, so that a page's policy can forbid
both.

Of many attempts, all new bests are drawn, and of the others with one verdict the first in each cell of a grid, since
the rest would only cover it. What lies outside of the axis is drawn at its edge, and the picture says so.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from attempts.record import LARGEST, Direction, Verdict
from coral.cli.report.markup import Html, element, join
from coral.views import axis, format
from coral.views.curve import BestStep, Curve, LinearAxis, Point, linear_axis

GRID = 3.0  # pixels of a cell's side
ONE_BY_ONE = 1500  # most attempts that improved which are drawn as marks with a title each
COLOURS = 8  # agents with a colour of their own
MARGIN_TOP, MARGIN_RIGHT, MARGIN_BOTTOM = 10.0, 14.0, 26.0
DIGIT = 7.2  # pixels, the width of a character of a label
NAMES = {verdict: verdict.replace(" ", "-") for verdict in Verdict}


class AxisScale(StrEnum):
    SCORE = "score"
    GAP = "gap"  # to the best, logarithmic


@dataclass(frozen=True)
class Frame:
    """Maps times and values to places in a picture. `low` and `high`: the values at the bottom and at the top of the
    plot."""

    width: float
    height: float
    left: float
    low: float
    high: float
    end: float
    is_log: bool

    @property
    def bottom(self) -> float:
        return self.height - MARGIN_BOTTOM

    def x(self, at: float) -> float:
        share = min(max(at / self.end, 0.0), 1.0) if self.end > 0 else 0.0
        return self.left + share * (self.width - MARGIN_RIGHT - self.left)

    def y(self, value: float) -> float:
        """Return the height of a value. Values outside of the axis are placed on its edge."""
        low, high = self.low, self.high
        if self.is_log:
            value, low, high = (math.log10(max(part, min(self.low, self.high))) for part in (value, low, high))
        whole = high / 4 - low / 4
        share = min(max((value / 4 - low / 4) / whole, 0.0), 1.0) if whole else 0.5
        return self.bottom - share * (self.bottom - MARGIN_TOP)


@dataclass(frozen=True)
class Chart:
    """The picture of a curve. `outside`: how many attempts are worse than the axis shows; `left_out`: how many are not
    drawn because they share a cell."""

    svg: Html
    outside: int = 0
    left_out: int = 0
    begins: BestStep | None = None  # where the axis begins, if earlier steps are left outside


def draw(
    curve: Curve, scale: AxisScale, width: float, height: float, *, agents: Sequence[str] = (), title: str
) -> Chart:
    """Draw the curve. `agents`: if given, their own bests are drawn instead of the attempts; only the first COLOURS
    have colours."""
    linear = linear_axis(curve) if scale is AxisScale.SCORE else None
    value = (lambda score: score) if scale is AxisScale.SCORE else curve.gap
    frame = _frame(curve, scale, width, height)
    if frame is None:
        return Chart(Html(""))
    shown = [] if agents else [point for point in curve.points if point.score is not None]
    drawn = _thinned(shown, frame, value)
    failed = [] if agents else _thinned_failures(curve.points, frame)
    layers = [
        element("title", title),
        element("desc", description(curve)),
        _axes(frame, scale, curve),
        _edge(frame, curve, linear),
        _line(curve.steps, frame, value, curve.end, "behind" if agents else "fleet"),
        *([] if agents else [_marks(drawn, frame, value), *failed]),
        _agent_lines(curve, frame, value, agents),
    ]
    svg = element("svg", *layers, viewBox=f"0 0 {width:g} {height:g}", role="img", xmlns="http://www.w3.org/2000/svg")
    outside = sum(linear.is_worse(point.score or 0.0) for point in shown) if linear else 0
    return Chart(svg, outside, len(shown) - len(drawn), linear.begins if linear else None)


def description(curve: Curve) -> str:
    """Return in words what the picture shows."""
    if not curve.steps:
        return "There is no score yet."
    first, last = curve.steps[0], curve.steps[-1]
    value, best = format.scores([first.value, last.value])
    end, attempts = format.duration(curve.end), format.plural(len(curve.points), "attempt")
    if not curve.gained:
        return f"The seed scores {best}; nothing has beaten it for {end}."
    if curve.to_best is None:
        again = f"the best again after {format.duration(last.at)} of {end}"
        return (
            f"The seed scores {best}; it is {again}, since what had beaten it was worse when graded again; {attempts}."
        )
    if first is last:
        found = f"#{first.number} was the first to have one, {value}, after {format.duration(first.at)} of {end}"
        return f"The seed has no score. {found}, and nothing has beaten it; {attempts}."
    begins = f"From the seed's {value}"
    if not curve.has_seed:
        begins = f"The seed has no score. From {value} (#{first.number}), the first step,"
    return (
        f"{begins} to {best} (#{last.number}) in {format.plural(len(curve.gained), 'step')}, "
        f"the last after {format.duration(last.at)} of {end}; {attempts}."
    )


def first_named(curve: Curve) -> str:
    """Return what the curve begins with: the seed, or the first attempt that had a score."""
    return "the seed" if curve.has_seed or not curve.steps else f"#{curve.steps[0].number}"


def bounds(curve: Curve, scale: AxisScale) -> tuple[float, float] | None:
    """Return the values at the bottom and at the top of the axis; None if there is nothing to draw."""
    if not curve.steps:
        return None
    if scale is AxisScale.GAP:
        return _gap_bounds(curve)
    linear = linear_axis(curve)
    return (linear.low, linear.high) if linear else None


def edge_note(curve: Curve, linear: LinearAxis) -> str:
    """Return what is drawn at the edge of a linear axis, in words; empty if nothing is."""
    held = [step.value for step in curve.steps] + [point.score for point in curve.points if point.score is not None]
    if not any(map(linear.is_worse, held)):
        return ""
    edge, less = ("lower", "less") if curve.direction is Direction.MAXIMIZE else ("upper", "more")
    return f"at the {edge} edge: what scores {less} than {format.score(linear.worst)}"


def _frame(curve: Curve, scale: AxisScale, width: float, height: float) -> Frame | None:
    found = bounds(curve, scale)
    if found is None:
        return None
    low, high = found
    longest = max(len(label) for label in _labels(_ticks(scale, low, high)))
    return Frame(width, height, 10 + longest * DIGIT, low, high, curve.end, scale is AxisScale.GAP)


def _gap_bounds(curve: Curve) -> tuple[float, float] | None:
    """Return the bounds of the axis of gaps: at the bottom half the smallest gap of all, where those without a gap are
    drawn; at the top somewhat more than the largest gap of a step. None if no step has a gap."""
    gaps = [gap for step in curve.steps if (gap := curve.gap(step.value)) > 0]
    largest = max(gaps, default=math.inf)
    if not math.isfinite(largest):
        return None
    near = [curve.gap(point.score) for point in curve.points if point.score is not None]
    smallest = min(gap for gap in (*gaps, *near) if gap > largest * 1e-12)
    return smallest / 2 or smallest, min(largest * 1.3, LARGEST)


def _ticks(scale: AxisScale, low: float, high: float) -> list[float]:
    if scale is AxisScale.SCORE:
        return axis.ticks(low, high)
    powers = axis.powers(low, high)
    return (
        powers
        if len(powers) > 1
        else [float(f"{value:.1g}") for value in (low * 1.5, low**0.5 * high**0.5, high / 1.5)]
    )


def _labels(values: Sequence[float]) -> list[str]:
    return [f"{value:.6g}" for value in values] or [""]


def _axes(frame: Frame, scale: AxisScale, curve: Curve) -> Html:
    right = frame.width - MARGIN_RIGHT
    values = _ticks(scale, frame.low, frame.high)
    parts = []
    for value, label in zip(values, _labels(values), strict=False):
        y = f"{frame.y(value):.1f}"
        parts.append(element("line", x1=f"{frame.left:.1f}", x2=f"{right:.1f}", y1=y, y2=y, class_="rule"))
        parts.append(element("text", label, x=f"{frame.left - 6:.1f}", y=y, dy="0.35em", class_="tick end"))
    times = axis.minutes(curve.end, 6 if frame.width > 500 else 3) if curve.end > 0 else [0.0]
    for at in times:
        x = frame.x(at)
        anchor = "tick last" if x > right - 20 else "tick middle"
        label = format.duration(at) if at else "0"
        parts.append(element("text", label, x=f"{x:.1f}", y=f"{frame.height - 8:.1f}", class_=anchor))
    base = f"{frame.bottom:.1f}"
    parts.append(element("line", x1=f"{frame.left:.1f}", x2=f"{right:.1f}", y1=base, y2=base, class_="base"))
    return element("g", *parts, aria_hidden="true")


def _edge(frame: Frame, curve: Curve, linear: LinearAxis | None) -> Html:
    """Return the note about the edge, placed in the corner where no curve begins."""
    note = edge_note(curve, linear) if linear else ""
    y = frame.bottom - 6 if curve.direction is Direction.MINIMIZE else MARGIN_TOP + 8
    return element("text", note, x=f"{frame.left + 6:.1f}", y=f"{y:.1f}", class_="tick") if note else Html("")


def _line(steps: Sequence[BestStep], frame: Frame, value: Callable[[float], float], end: float, kind: str) -> Html:
    """Return a staircase through the steps, up to the end."""
    if not steps:
        return Html("")
    path = [f"M{frame.x(steps[0].at):.1f} {frame.y(value(steps[0].value)):.1f}"]
    path += [f"H{frame.x(step.at):.1f}V{frame.y(value(step.value)):.1f}" for step in steps[1:]]
    return element("path", d="".join([*path, f"H{frame.x(end):.1f}"]), class_=f"line {kind}")


def _agent_lines(curve: Curve, frame: Frame, value: Callable[[float], float], agents: Sequence[str]) -> Html:
    """Return the lines of the agents, those with colours on top."""
    lines = [
        _line(_thin_steps(curve.own.get(name, ()), frame), frame, value, curve.end, colour_of(place))
        for place, name in reversed(list(enumerate(agents)))
    ]
    return join(*lines)


def colour_of(place: int) -> str:
    """Return the class of an agent's line, by its place among the agents."""
    return f"agent-{place + 1}" if place < COLOURS else "other"


def _thin_steps(steps: Sequence[BestStep], frame: Frame) -> list[BestStep]:
    """Keep of several steps within one pixel the last, from which the line goes on."""
    kept: dict[int, BestStep] = {round(frame.x(step.at)): step for step in steps}
    return list(kept.values())


def _thinned(points: Sequence[Point], frame: Frame, value: Callable[[float], float]) -> list[Point]:
    def cell(point: Point) -> tuple[object, ...]:
        if point.improved and point.verdict is Verdict.NEW_BEST:
            return (point.number,)
        return (int(frame.x(point.at) / GRID), int(frame.y(value(point.score or 0.0)) / GRID), point.verdict)

    return axis.first_in_cells(points, cell)


def _thinned_failures(points: Sequence[Point], frame: Frame) -> list[Html]:
    """Return attempts without a score as ticks at the bottom."""
    failed = [point for point in points if point.score is None]
    drawn = axis.first_in_cells(failed, lambda point: int(frame.x(point.at) / GRID))
    path = "".join(f"M{frame.x(point.at):.1f} {frame.bottom - 5:.1f}v5" for point in drawn)
    return [element("path", d=path, class_="failed")] if path else []


def _marks(points: Sequence[Point], frame: Frame, value: Callable[[float], float]) -> Html:
    """Return the attempts: those that improved as marks of their own if there are not too many, and the others as one
    path for each verdict."""
    improved = [point for point in points if point.improved]
    single = improved if len(improved) <= ONE_BY_ONE else []
    named = {point.number for point in single}
    others = [point for point in points if point.number not in named]
    paths = []
    for verdict in (Verdict.WORSE, Verdict.TIED, Verdict.OWN_BEST, Verdict.NEW_BEST):
        places = (point for point in others if point.verdict is verdict)
        path = "".join(f"M{frame.x(point.at):.1f} {frame.y(value(point.score or 0.0)):.1f}h0" for point in places)
        paths.append(element("path", d=path, class_=f"dots {NAMES[verdict]}") if path else None)
    marks = [
        _mark(point, frame, value) for point in sorted(single, key=lambda point: point.verdict is Verdict.NEW_BEST)
    ]
    return join(*paths, *marks)


def _mark(point: Point, frame: Frame, value: Callable[[float], float]) -> Html:
    score = point.score or 0.0
    is_best = point.verdict is Verdict.NEW_BEST
    text = f"#{point.number} by {point.agent}: {format.score(point.score)}, {point.verdict}"
    place = {"cx": f"{frame.x(point.at):.1f}", "cy": f"{frame.y(value(score)):.1f}", "r": 3.6 if is_best else 2.6}
    return element("circle", element("title", text), **place, class_=f"mark {NAMES[point.verdict]}")
