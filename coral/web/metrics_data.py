"""The data of two figures against each other: the score, or metrics that the grader gives beside it."""

from collections.abc import Mapping

from attempts.index import metrics
from coral.web.reading import RunView

MOST_NAMES = 200
MOST_POINTS = 4000  # more lie on each other on any screen

Json = dict[str, object]


def names(view: RunView, _: Mapping[str, str]) -> Json:
    """The names of all metrics that are numbers."""
    return {"names": view.index.ask(lambda rows: metrics.names(rows, MOST_NAMES, view.alone))}


def pairs(view: RunView, asked: Mapping[str, str]) -> Json:
    """Each attempt's `x` and `y`: names of metrics; the score where none is given."""
    x, y = asked.get("x", metrics.SCORE), asked.get("y", metrics.SCORE)
    points, total = view.index.ask(lambda rows: metrics.pairs(rows, x, y, MOST_POINTS, view.alone))
    return {
        "points": [[point.number, point.agent, point.verdict, point.x, point.y] for point in points],
        "best": view.best,
        "left_out": total - len(points),
    }
