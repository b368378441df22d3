"""Makes the curves of a report. Each is drawn twice, wide for a screen or paper and narrow for a telephone, and the
page shows one of the two."""

from collections import Counter
from collections.abc import Sequence

from attempts.record import Direction, Verdict
from coral.cli.report.chart import COLOURS, AxisScale, Chart, colour_of, description, draw, first_named
from coral.cli.report.markup import Html, element, join
from coral.cli.report.parts import section
from coral.views import format
from coral.views.curve import Curve

WIDE, NARROW = (900.0, 340.0), (360.0, 280.0)
SHOWN = (Verdict.NEW_BEST, Verdict.OWN_BEST, Verdict.TIED, Verdict.WORSE, Verdict.FAILED)
LINES = 60  # agents whose line is drawn


def curves(curve: Curve) -> Html:
    if not curve.steps:
        return section("curve", "Score over time", element("p", "There is no score yet."))
    return section(
        "curve",
        "Score over time",
        element("p", description(curve)),
        _figure(curve, AxisScale.SCORE, "The fleet's best, and every attempt"),
        _figure(curve, AxisScale.GAP, "How far from the best, on a logarithmic scale")
        if len(curve.steps) > 2
        else None,
        _per_agent(curve) if len(curve.own) > 1 else None,
    )


def _figure(curve: Curve, scale: AxisScale, title: str) -> Html | None:
    wide = draw(curve, scale, *WIDE, title=title)
    if not wide.svg:
        return None
    return element(
        "figure",
        element("figcaption", title),
        _both(wide.svg, draw(curve, scale, *NARROW, title=title).svg),
        _verdict_legend(curve),
        element("p", _omissions(curve, wide), class_="quiet") if _omissions(curve, wide) else None,
    )


def _both(wide: Html, narrow: Html) -> Html:
    return join(element("div", wide, class_="wide"), element("div", narrow, class_="narrow"))


def _omissions(curve: Curve, chart: Chart) -> str:
    """Return in words what the picture leaves out, and by which rule."""
    parts = []
    if chart.begins is not None:
        worse = "above" if curve.direction is Direction.MINIMIZE else "below"
        first = f"{first_named(curve)}, {format.score(curve.steps[0].value)}"
        begins = format.score(chart.begins.value)
        parts.append(f"The axis begins at #{chart.begins.number}, {begins}; {first}, lies {worse} it.")
    if chart.outside:
        parts.append(f"At its edge: {format.plural(chart.outside, 'attempt')} with a worse score than it shows.")
    if chart.left_out:
        rule = "every new best, and of the others of one verdict the first within 3 by 3 points"
        parts.append(f"Drawn are {rule}: {chart.left_out} more lie on top of these.")
    return " ".join(parts)


def _verdict_legend(curve: Curve) -> Html:
    counts = Counter(point.verdict for point in curve.points)
    items = [
        element(
            "li", element("span", class_=f"key verdict {verdict.replace(' ', '-')}"), f"{verdict} ({counts[verdict]})"
        )
        for verdict in SHOWN
        if counts[verdict]
    ]
    return element("ul", element("li", element("span", class_="key fleet"), "the proven best"), *items, class_="legend")


def _per_agent(curve: Curve) -> Html | None:
    names = ranked_agents(curve)
    title = "Each agent's own best"
    wide = draw(curve, AxisScale.SCORE, *WIDE, agents=names[:LINES], title=title)
    narrow = draw(curve, AxisScale.SCORE, *NARROW, agents=names[:LINES], title=title)
    scores = format.scores([curve.own[name][-1].value for name in names])
    items = [
        element("li", element("span", class_=f"key {colour_of(place)}"), f"{format.line(name, 60)} {score}")
        for place, (name, score) in enumerate(zip(names[:COLOURS], scores, strict=False))
    ]
    more = len(names) - COLOURS
    rest = [element("li", element("span", class_="key other"), f"{more} more")] if more > 0 else []
    return element(
        "figure",
        element("figcaption", title),
        _both(wide.svg, narrow.svg),
        element("ul", *items, *rest, element("li", element("span", class_="key behind"), "the fleet"), class_="legend"),
    )


def ranked_agents(curve: Curve) -> Sequence[str]:
    """Return the agents that have a score, the best first. Of equal agents, the one that reached its score earlier
    comes first."""
    held = {name: steps[-1] for name, steps in curve.own.items() if steps}
    return sorted(held, key=lambda name: (curve.gap(held[name].value), held[name].at))
