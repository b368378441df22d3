"""The data about attempts: a table of many, all that is known of one, and what one changed."""

import math
from collections.abc import Mapping, Sequence

from attempts.index import query
from attempts.index.listing import ListOrder, Sought, page
from attempts.index.metrics import MetricRange
from attempts.index.query import Named, Wanted
from attempts.noise import deviation, mean, median
from attempts.record import Attempt, Kind, Verdict
from coral.errors import CoralError
from coral.views import format
from coral.web import artifacts, diff_data
from coral.web.reading import RunView, with_scores
from workspace.hub import cut_diff

ROWS = 50  # of one page
MOST_ROWS = 200
LONGEST_FEEDBACK = 200_000
CHILDREN = 50  # attempts built on one that are listed; more are only counted

Json = dict[str, object]


def table(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return one page of the table of attempts, filtered and sorted by the parameters; each row has the value of
    `metric`, if one is given. CoralError for an unknown filter or order."""
    wanted = Wanted(asked.get("agent", ""), _choice(Kind, asked, "kind"), asked.get("text", "")[:200], view.only_agent)
    metric, order = _metric(asked), _choice(ListOrder, asked, "order") or ListOrder.NUMBER
    if order is ListOrder.METRIC and metric is None:
        raise CoralError("cannot sort attempts by a metric: none is named", "name one as `metric`")
    sought = Sought(wanted, _choice(Verdict, asked, "verdict"), metric)
    most = min(number_in(asked, "most", ROWS), MOST_ROWS)
    offset = number_in(asked, "offset", 0)
    down = asked.get("way", "down") != "up"
    found = view.index.ask(lambda rows: page(rows, sought, order, down=down, offset=offset, most=most))
    records = view.index.with_records(lambda _: found.numbers)
    lines = with_scores(view, (record for _, record in records))
    scores = format.scores([line.median for line in lines])
    rows = [_row(view, line.attempt, score) for line, score in zip(lines, scores, strict=True)]
    if metric is not None:
        values = [format.metric(record.metrics.get(metric.name)) for _, record in records]
        rows = [{**row, "metric": value} for row, value in zip(rows, values, strict=True)]
    return {"rows": rows, "total": found.total, "offset": offset, "most": most}


def _metric(asked: Mapping[str, str]) -> MetricRange | None:
    """Return the range of a metric from the parameters `metric`, `least` and `greatest`; None without `metric`."""
    name = asked.get("metric", "")
    return MetricRange(name, _bound(asked, "least"), _bound(asked, "greatest")) if name else None


def _bound(asked: Mapping[str, str], name: str) -> float | None:
    given = asked.get(name, "").strip()
    if not given:
        return None
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise CoralError(f"cannot list attempts by {name} {given[:40]!r}", "give a number, as 0.5 or 1e-3")
    return value


def _choice(kinds: type[Kind] | type[Verdict] | type[ListOrder], asked: Mapping[str, str], name: str):  # type: ignore[no-untyped-def]
    given = asked.get(name, "")
    if given and given not in set(kinds):
        raise CoralError(f"cannot list attempts by {name} {given!r}", f"one of {', '.join(kinds)}")
    return kinds(given) if given else None


def number_in(asked: Mapping[str, str], name: str, default: int) -> int:
    """Read a whole number from the parameters of a request. CoralError if it is none."""
    given = asked.get(name, "")
    if not given:
        return default
    if not (given.isdecimal() and given.isascii() and len(given) <= 12):
        raise CoralError(f"cannot read {name} {given[:40]!r}", "give a whole number")
    return int(given)


def verdict(record: Attempt) -> str:
    """Return the verdict as pages show it: a grade of the seed has none."""
    return "the seed" if record.kind is Kind.BASELINE else record.verdict


def _row(view: RunView, record: Attempt, score: str) -> Json:
    return {
        "number": record.number,
        "score": score,
        "verdict": verdict(record),
        "best": record.number == view.proven,
        "kind": record.kind,
        "of": record.of,
        "agent": record.agent,
        "title": format.line(record.title),
        "reason": format.line(record.reason),
        "epoch": record.epoch if record.epoch < view.epoch else None,
        "at": record.published_at,
        "ago": format.ago(record.published_at),
    }


def hint(view: RunView, number: int) -> Json:
    """Return the summary that appears when a reader points at `#17` in a text."""
    (line,) = with_scores(view, [view.attempt(number)])
    return _row(view, line.attempt, format.score(line.median))


def one(view: RunView, number: int) -> Json:
    """Return all that is known of an attempt. CoralError if there is none of that number."""
    record = view.attempt(number)
    line = view.index.with_records(lambda rows: map(Named, query.lineage(rows, number, 12, view.only_agent)))
    children = view.index.ask(lambda rows: built_on(rows, record.commit, number))
    # A trial of numbers may be graded by another rule.
    is_compared = bool(record.agent) and record.kind is not Kind.TUNE and record.epoch == view.epoch
    above = [ancestor for _, ancestor in line if ancestor.number != number and ancestor.epoch == record.epoch]
    measured, *ancestors = with_scores(view, [record, *above])
    return {
        **_row(view, record, format.score(measured.median)),
        "gain": format.delta(measured.median, view.baseline) if is_compared else "",
        "feedback": format.clean(record.feedback)[:LONGEST_FEEDBACK],
        "metrics": [[format.line(name, 60), format.metric(value)] for name, value in record.metrics.items()],
        "commit": record.commit,
        "channel": record.channel,
        "sealed_by": record.seal,
        "seconds": format.duration(record.seconds),
        "measured": _measured(measured.scores) if measured.count > 1 else "",
        "files": artifacts.listed(view, number),
        "ancestors": [
            {"number": ancestor.attempt.number, "score": format.score(ancestor.median)} for ancestor in ancestors
        ],
        "children": children[:CHILDREN],
        "more_children": max(0, len(children) - CHILDREN),
    }


def _measured(scores: Sequence[float]) -> str:
    """Return what `coral show` says of several grades, without each of them."""
    middle = f"median {format.score(median(scores))}, mean {format.score(mean(scores))}"
    return f"{len(scores)} times: {middle}, standard deviation {deviation(scores):.2g}"


def built_on(rows: query.Rows, commit: str, number: int) -> list[int]:
    """Return the numbers of the attempts that were built on a commit, in order."""
    statement = "SELECT number FROM records WHERE parent = ? AND number != ? AND kind IN (?, ?) ORDER BY number"
    found = rows.execute(statement, (commit, number, Kind.REAL, Kind.TUNE))
    return [int(child) for (child,) in found]


def change(view: RunView, number: int, against: str) -> Json:
    """Return the difference between an attempt and `against`: `parent`, `best`, `seed`, or the number of an attempt."""
    record = view.attempt(number, "compare")
    other, before = _other(view, record, against)
    if not before:
        return {"against": other, "none": f"#{number} has no {against} to compare it with"}
    text, is_cut = cut_diff(view.layout.hub, before, record.commit)
    return {"against": other, "none": "", "cut": is_cut, **diff_data.files(text)}


def _other(view: RunView, record: Attempt, against: str) -> tuple[str, str]:
    """Return the label and the commit of the attempt to compare with; an empty commit if there is none."""
    if against == "parent":
        return "its parent", record.parent
    if against == "best":
        number = view.best
    elif against == "seed":
        number = view.seed.number if view.seed else None
    else:
        number = number_in({"against": against}, "against", 0)
    if number is None:
        return against, ""
    return f"#{number}", view.attempt(number, "compare").commit
