"""`coral compare`: compares two to ten runs: results, settings that differ, curves over time and over attempts."""

import argparse
import csv
import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.text import Text

from coral.cli.parser import print_json
from coral.cli.run_data.comparison import RunOutcome, check_comparable, differing, labels, outcome_of
from coral.cli.ui.curve import RUN_STYLES, BestLine, draw
from coral.cli.ui.table import console, dim, print_title, table, tone
from coral.errors import CoralError
from coral.fleet.reasons import BudgetKey
from coral.reading import run_folder
from coral.reading.budgets import partly_known
from coral.reading.run_view import RunView
from coral.views import format

COLUMNS = (
    *(
        "run",
        "state?",
        ">agents?",
        ".best",
        ".best - seed",
        "which?",
        ".lead?",
        ">attempts",
        ">failed?",
        ">time",
        ">to the best",
    ),
    *(">cost", ">tokens?", ".gain per attempt"),
)
HEIGHT, WIDEST = 9, 100
UNKNOWN = "not known"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="its folder, its name, or either end of its name")
    parser.add_argument("--task", metavar="NAME", help="look for the names among the runs of this task alone")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="for programs: results, differing settings, curves")
    how.add_argument("--csv", action="store_true", help="for a spreadsheet: one line a run")


def run(args: argparse.Namespace) -> int:
    views = [RunView(run_folder.named(name, args.task)) for name in args.runs]
    if alone := next((view for view in views if view.only_agent), None):
        raise CoralError(f"cannot compare {alone.name}: its agents do not share", "compare runs outside of a workspace")
    concerns = check_comparable(views)
    outcomes, names = [outcome_of(view) for view in views], labels(views)
    different = differing(outcomes)
    if args.json:
        return print_json(_data(outcomes, different, concerns))
    if args.csv:
        return _csv(outcomes)
    out = console()
    for concern in concerns:
        out.print(Text(concern, style="yellow"))
    out.print(table(_columns(outcomes), _rows(outcomes, names), out.width))
    _settings(out, outcomes, names, different)
    for title, series, end_text in (
        ("Best score over time", RunOutcome.over_time, format.duration),
        ("Best score over attempts", RunOutcome.over_attempts, lambda end: format.plural(int(end), "attempt")),
    ):
        _curves(out, title, outcomes, names, series, end_text)
    return 0


def _data(
    outcomes: Sequence[RunOutcome], different: list[tuple[str, list[str]]], concerns: list[str]
) -> dict[str, object]:
    runs = [
        {**outcome.data(), "over_time": outcome.over_time(), "over_attempts": outcome.over_attempts()}
        for outcome in outcomes
    ]
    return {
        "runs": runs,
        "settings": [{"key": key, "values": values} for key, values in different],
        "concerns": concerns,
    }


def _csv(outcomes: Sequence[RunOutcome]) -> int:
    rows = [
        {key: value for key, value in data.items() if key != "reason"}
        | {f"{what}_unknown_of": _names(outcome.unknown_of(what)) for what in (BudgetKey.TOKENS, BudgetKey.MONEY)}
        for outcome in outcomes
        if (data := outcome.data())
    ]
    writer = csv.DictWriter(sys.stdout, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return 0


def _names(names: list[str] | None) -> str:
    return UNKNOWN if names is None else " ".join(names)


def _columns(outcomes: Sequence[RunOutcome]) -> list[str]:
    """Return the columns for which at least one run has a value."""
    has = {
        ".lead?": any(_lead(outcome) is not None for outcome in outcomes),
        ">cost": any(
            outcome.money is not None or (partly_known(outcome.view) and not outcome.tokens) for outcome in outcomes
        ),
        ">tokens?": any(outcome.tokens or BudgetKey.TOKENS in partly_known(outcome.view) for outcome in outcomes),
    }
    return [column for column in COLUMNS if has.get(column, True)]


def _rows(outcomes: Sequence[RunOutcome], names: Sequence[str]) -> list[list[object]]:
    bests = format.scores([outcome.curve.best for outcome in outcomes])
    leads = format.scores([_lead(outcome) for outcome in outcomes])
    rows = [
        dict(zip(COLUMNS, _row(*outcome, place), strict=True))
        for place, outcome in enumerate(zip(outcomes, names, bests, leads, strict=True))
    ]
    return [[row[column] for column in _columns(outcomes)] for row in rows]


def _row(outcome: RunOutcome, name: str, best: str, lead: str, place: int) -> list[object]:
    view, partly = outcome.view, partly_known(outcome.view)
    money_mark, no_money = ("≥", UNKNOWN) if BudgetKey.MONEY in partly else ("", "")
    tokens_mark, no_tokens = ("≥", UNKNOWN) if BudgetKey.TOKENS in partly else ("", "")
    is_leading = _lead(outcome) is not None
    return [
        Text(name, style=_style(place)),
        tone(view.state),
        str(len(view.agents())),
        best,
        format.delta(outcome.curve.best, view.baseline) if view.proven is not None else "",
        _which(view),
        f"{lead} #{outcome.lead.text('number')}" if is_leading else "",
        str(outcome.attempts),
        str(view.failed),
        outcome.took,
        "" if outcome.curve.to_best is None else format.duration(outcome.curve.to_best),
        f"{money_mark}{format.money(outcome.money)}" if outcome.money is not None else no_money,
        f"{tokens_mark}{format.tokens(outcome.tokens)}" if outcome.tokens else no_tokens,
        "" if outcome.gain_per_attempt is None else f"{outcome.gain_per_attempt:.3g}",
    ]


def _which(view: RunView) -> str:
    """Return which attempt is the best; empty where nothing has a score."""
    if view.proven is not None:
        return f"#{view.proven}"
    return "" if view.best is None else "the seed"


def _lead(outcome: RunOutcome) -> float | None:
    """Return the score of the lead; None if the lead is the proven best."""
    lead = outcome.lead
    return lead.number("median") if lead.data.get("proven") is False else None


def _style(place: int) -> str:
    return RUN_STYLES[place % len(RUN_STYLES)]


def _settings(
    out: Console, outcomes: Sequence[RunOutcome], names: Sequence[str], different: list[tuple[str, list[str]]]
) -> None:
    print_title(out, "Settings that differ")
    unread = [name for name, outcome in zip(names, outcomes, strict=True) if outcome.settings is None]
    if unread:
        out.print(Text(f"the task of {format.some_of(unread)} cannot be read", style="yellow"))
    if not different:
        out.print(dim("none"))
        return
    columns = ["setting", *(f"{name}*" for name in names)]
    out.print(table(columns, [[key, *(value or "" for value in values)] for key, values in different], out.width))


def _curves(
    out: Console,
    title: str,
    outcomes: Sequence[RunOutcome],
    names: Sequence[str],
    series: Callable[[RunOutcome], list[tuple[float, float]]],
    end_text: Callable[[float], str],
) -> None:
    """Print the curves of all runs on one axis; later runs lie over earlier ones."""
    lines = [BestLine(series(outcome), _style(place)) for place, outcome in enumerate(outcomes)]
    end = max((line.points[-1][0] for line in lines if line.points), default=0.0)
    drawn = draw(lines, (), min(out.width - 2, WIDEST), HEIGHT, end, end_text(end))
    if not drawn:
        return
    print_title(out, title)
    for text in drawn:
        out.print(text)
    out.print(Text("  ").join(Text(f"━ {name}", style=_style(place)) for place, name in enumerate(names)))
