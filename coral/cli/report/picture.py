"""Draws a run's curve as a file of its own: SVG as in a report, any other format by matplotlib.

All formats show the same: the fleet's best, the attempts by their verdicts, and the axis of the report.
"""

from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

from attempts.record import Verdict
from coral.cli.report.chart import AxisScale, bounds, draw, edge_note, first_named
from coral.cli.report.markup import Html, element
from coral.errors import CoralError
from coral.extras import installs
from coral.views import format
from coral.views.curve import Curve, linear_axis

STYLE = Path(__file__).with_name("style.css")
SVG = ".svg"
DRAWN = (".png", ".pdf", ".jpg", ".webp", ".eps")  # by matplotlib
SIZE = (900.0, 400.0)
UNITS = ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
COLOURS = {Verdict.WORSE: "#9a9d9f", Verdict.TIED: "#9a7500", Verdict.OWN_BEST: "#2a78d6", Verdict.NEW_BEST: "#0b7a43"}


def picture(curve: Curve, scale: AxisScale, title: str, suffix: str) -> bytes:
    """Return the file's content. `suffix`: the format, such as `.png`. CoralError if it cannot be drawn."""
    if suffix not in (SVG, *DRAWN):
        known = ", ".join((SVG, *DRAWN))
        raise CoralError(f"cannot draw a picture of the kind {suffix or 'without an ending'!r}", f"name it {known}")
    if bounds(curve, scale) is None:
        what = "there is no score yet"
        if curve.steps:
            what = f"nothing has beaten {first_named(curve)}, so that there is no gap"
        raise CoralError(f"cannot draw the curve: {what}", "`coral status` shows where the run stands")
    return _svg(curve, scale, title) if suffix == SVG else _by_matplotlib(curve, scale, title, suffix)


def _svg(curve: Curve, scale: AxisScale, title: str) -> bytes:
    """Return the SVG with a background and with the style of a report inside, which browsers and drawing programs
    read."""
    drawn = draw(curve, scale, *SIZE, title=title).svg
    style = element("style", Html(STYLE.read_text(encoding="utf-8")))
    ground = element("rect", width="100%", height="100%", class_="ground")
    head, _, rest = drawn.partition(">")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{style}{ground}{rest}\n'.encode("utf-8", "replace")


def _by_matplotlib(curve: Curve, scale: AxisScale, title: str, suffix: str) -> bytes:
    if find_spec("matplotlib") is None:
        hint = f"install it: {installs('plot')}; or draw an SVG, which needs nothing: -o curve.svg"
        raise CoralError(f"cannot draw a {suffix[1:]}: matplotlib is not installed", hint)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    low, high = bounds(curve, scale) or (0.0, 1.0)

    def value(score: float) -> float:
        """Return the value to draw for a score. What lies outside of the axis is drawn at its edge."""
        return min(max(score if scale is AxisScale.SCORE else curve.gap(score), low), high)

    unit, name = next((unit, name) for unit, name in UNITS if curve.end >= 2 * unit or unit == 1)
    for verdict, colour in COLOURS.items():
        points = [point for point in curve.points if point.verdict is verdict and point.score is not None]
        places = [point.at / unit for point in points], [value(point.score or 0.0) for point in points]
        axes.scatter(
            *places,
            s=14 if verdict is Verdict.NEW_BEST else 7,
            c=colour,
            label=f"{verdict}",
            linewidths=0,
            clip_on=False,
        )
    ends = [step.at / unit for step in curve.steps] + [curve.end / unit]
    values = [value(step.value) for step in curve.steps]
    axes.step(ends, [*values, values[-1]], where="post", color=COLOURS[Verdict.NEW_BEST], label="the proven best")
    linear = linear_axis(curve) if scale is AxisScale.SCORE else None
    if linear is None:
        axes.set_yscale("log")
    else:
        axes.text(0.01, 0.97, edge_note(curve, linear), transform=axes.transAxes, va="top", size="small", color="gray")
    axes.set_ylim(low, high)
    axes.set(
        title=format.line(title, 100), xlabel=name, ylabel="score" if scale is AxisScale.SCORE else "gap to the best"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    held = BytesIO()
    figure.savefig(held, format=suffix[1:])
    return held.getvalue()
