"""The data of the chart of one figure against another: the score, or metrics that the grader gives beside it."""

from collections.abc import Mapping

from attempts.index import metrics
from coral.web.reading import RunView

MOST_NAMES = 200
MOST_POINTS = 4000  # more would cover each other on any screen

Json = dict[str, object]


def names(view: RunView, _: Mapping[str, str]) -> Json:
    """Return the names of all metrics whose values are numbers, at most MOST_NAMES."""
    return {"names": view.index.ask(lambda rows: metrics.names(rows, MOST_NAMES, view.only_agent))}


def pairs(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return for each attempt the values of `x` and `y`. These parameters name metrics; the default is the score."""
    x, y = asked.get("x", metrics.SCORE), asked.get("y", metrics.SCORE)
    points, total = view.index.ask(lambda rows: metrics.pairs(rows, x, y, MOST_POINTS, view.only_agent))
    return {
        "points": [[point.number, point.agent, point.verdict, point.x, point.y] for point in points],
        "best": view.best,
        "left_out": total - len(points),
    }
