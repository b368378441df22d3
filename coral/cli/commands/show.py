"""`coral show`: shows one attempt with all that is known of it and, on request, its change."""

import argparse

from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from attempts.index import query
from attempts.index.query import Named
from attempts.noise import deviation, mean, median
from attempts.record import OPEN, Attempt, Kind, Verdict, to_dict
from coral.cli.parser import attempt_number, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.table import console, dim, verdict_text
from coral.reading.attempt_rows import measured_again, with_scores
from coral.reading.run_view import RunView, names_in
from coral.views import format
from coral.views.holdout import divergence_text
from workspace.seal import Level

ANCESTORS = 6  # attempts of a lineage that are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("number", type=attempt_number, metavar="N", help="the attempt")
    parser.add_argument("--diff", action="store_true", help="also its difference from the attempt it was built on")
    parser.add_argument("--json", action="store_true", help="for programs: the record, and the change with --diff")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    attempt = view.attempt(args.number)
    change = _change(view, attempt) if args.diff else None
    if args.json:
        held_out = {"holdout": score} if (score := view.on_the_holdout.get(attempt.number)) is not None else {}
        again = measured_again(_scores(view, attempt))
        return print_json({**to_dict(attempt), **again, **held_out, **({} if change is None else {"diff": change})})
    out = console()
    _head(out, view, attempt)
    _facts(out, view, attempt)
    if attempt.feedback.strip():
        out.print()
        out.print(Text(format.source(attempt.feedback).strip()))
    if change is not None:
        out.print()
        out.print(Syntax(format.source(change), "diff", background_color="default") if change else dim("no change"))
    return 0


def _head(out: Console, view: RunView, attempt: Attempt) -> None:
    is_seed = attempt.kind is Kind.BASELINE
    is_earlier = attempt.epoch < view.epoch
    scores = _scores(view, attempt)
    gain = "" if is_seed or is_earlier else format.delta(median(scores) if scores else None, view.baseline)
    head = (f"#{attempt.number} {format.score(median(scores) if scores else attempt.score)}", "bold")
    verdict = "the seed" if is_seed else verdict_text(attempt)
    is_proven_later = attempt.number == view.proven and attempt.verdict is not Verdict.NEW_BEST
    standing = (", the best", "green") if is_proven_later else ""
    than = f"  {gain} against the seed" if gain else f"  epoch {attempt.epoch}" if is_earlier else ""
    out.print(Text.assemble(head, "  ", verdict, standing, dim(than)))
    out.print(Text(format.line(attempt.title)))
    if attempt.reason:
        out.print(Text(format.line(attempt.reason), style="red"))


def _facts(out: Console, view: RunView, attempt: Attempt) -> None:
    of = f" of #{attempt.of}" if attempt.of is not None else ""
    is_open = attempt.channel == OPEN and attempt.score is not None
    rows = [
        ("by", attempt.agent),
        ("kind", f"{attempt.kind}{of}" if attempt.kind in (Kind.TUNE, Kind.CONFIRM) else ""),
        ("epoch", f"{attempt.epoch}, before the task changed" if attempt.epoch < view.epoch else ""),
        ("measured", _measured(view, attempt)),
        ("hold-out", _on_the_holdout(view, attempt)),
        ("graded", f"{format.ago(attempt.published_at)}, in {format.duration(attempt.seconds)}"),
        ("commit", attempt.commit[:12]),
        ("from", _lineage(view, attempt)),
        ("channel", "open: code of the candidate may have written the result" if is_open else _closed(attempt)),
        ("sealed", _sealed(attempt)),
        *((format.line(name, 40), format.metric(value)) for name, value in attempt.metrics.items()),
        ("files", _artifacts(view, attempt)),
    ]
    grid = Table.grid(padding=(0, 2, 0, 0))
    for name, value in rows:
        if value:
            grid.add_row(dim(name), Text(value))
    out.print()
    out.print(grid)


def _sealed(attempt: Attempt) -> str:
    if not attempt.seal:
        return ""
    return (
        "no: its agent could read and change what you can, the grader included"
        if attempt.seal == Level.NONE
        else f"its agent, by {attempt.seal}"
    )


def _closed(attempt: Attempt) -> str:
    return attempt.channel if attempt.score is not None else ""


def _measured(view: RunView, attempt: Attempt) -> str:
    """Return all scores of an attempt that was measured several times; else an empty text."""
    scores = _scores(view, attempt)
    if len(scores) < 2:
        return ""
    listed = ", ".join(map(format.score, scores))
    middle = f"median {format.score(median(scores))}, mean {format.score(mean(scores))}"
    return f"{middle}, standard deviation {deviation(scores):.2g}: {listed}"


def _scores(view: RunView, attempt: Attempt) -> tuple[float, ...]:
    found = view.index.ask(lambda rows: query.measured(rows, attempt.number))
    return () if found is None else found.scores


def _on_the_holdout(view: RunView, attempt: Attempt) -> str:
    found = next((graded for graded in view.holdouts if graded.row.number == attempt.number), None)
    if found is None:
        score = view.on_the_holdout.get(attempt.number)
        return "" if score is None else format.score(score)
    return ": ".join(text for text in (format.score(found.row.holdout), divergence_text(found)) if text)


def _lineage(view: RunView, attempt: Attempt) -> str:
    """Return the attempts that it was built on, oldest first, with their scores."""
    if attempt.kind is Kind.BASELINE:
        return ""
    found = view.index.with_records(
        lambda rows: map(Named, query.lineage(rows, attempt.number, ANCESTORS + 2, view.only_agent))
    )
    line = [ancestor for _, ancestor in found if ancestor.number != attempt.number and ancestor.epoch == attempt.epoch]
    shown = [
        f"#{ancestor.attempt.number} {format.score(ancestor.median)}"
        for ancestor in with_scores(view, line[-ANCESTORS:])
    ]
    whole = len(line) <= ANCESTORS and (not line or line[0].kind is Kind.BASELINE)
    return ("" if whole else "… → ") + " → ".join(shown)


def _artifacts(view: RunView, attempt: Attempt) -> str:
    """Return the folder and the names of the files that the grader left."""
    folder = view.layout.grade(attempt.number)
    names = names_in(folder)
    return f"{folder}: {', '.join(format.line(name, 60) for name in names)}" if names else ""


def _change(view: RunView, attempt: Attempt) -> str:
    from workspace.hub import diff

    return diff(view.layout.hub, attempt.parent, attempt.commit) if attempt.parent else ""
