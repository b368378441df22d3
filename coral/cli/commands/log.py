"""`coral log`: the leaderboard, or with --recent the latest attempts; --agent, --kind and --search narrow it down."""

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from rich.text import Text

from attempts.index import query
from attempts.index.query import Named, Wanted
from attempts.noise import deviation, mean, median, summary, tiny
from attempts.record import OPEN, Attempt, Kind, Verdict, to_dict
from coral.cli.commands.tell import check_agent
from coral.cli.parser import count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.table import Table, console, dim, print_table, table, verdict_text
from coral.errors import CoralError
from coral.reading.run_view import RunView
from coral.views import format

COLUMNS = (">#", ".score", ".median", ".mean?", ".±sd", ">n", ".±seed?", "verdict", "agent", "when?", "title*")
MEASURED = ("median", "mean", "deviation", "count")  # as `attempts.noise.summary` names them
SHOWN = 5  # attempts that are named of one kind of failure
MEASURED_AGAIN = (".median", ".mean?", ".±sd", ">n")  # left out where every attempt was graded once


@dataclass(frozen=True)
class Line:
    """One attempt as it is listed, with everything that its tree scored."""

    attempt: Attempt
    scores: tuple[float, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=count, default=20, metavar="N", help="at most this many (default 20); 0 is all")
    parser.add_argument("--recent", action="store_true", help="newest first, failed ones too, instead of best first")
    parser.add_argument("--failures", action="store_true", help="the failed ones, by the reason of their failure")
    parser.add_argument("--agent", metavar="AGENT", help="only of this agent")
    parser.add_argument(
        "--kind", choices=[kind.value for kind in Kind if kind is not Kind.HOLDOUT], help="only of this kind"
    )
    where = "only where the title, the reason or the feedback contains TEXT"
    parser.add_argument("--search", metavar="TEXT", help=where)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs: the records")
    form.add_argument("--csv", action="store_true", help="for tables: a row for each record, a column for each metric")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    most = args.n if args.n > 0 else None
    wanted = Wanted(args.agent or "", args.kind and Kind(args.kind), args.search or "", view.alone)
    if args.failures:
        if args.csv:
            raise CoralError("cannot print failures as CSV: they are groups", "use --json, or --recent --csv")
        return _failures(view, wanted, most, as_json=args.json)
    lines = _recent(view, wanted, most) if args.recent else ranking(view, wanted, most)
    if not lines and view.agents():
        check_agent(view, args.agent)
    if args.json:
        return print_json([_data(line) for line in lines])
    if args.csv:
        return _print_csv(lines)
    if not lines:
        totals = view.index.ask(query.totals)
        if totals.earlier == totals.attempts and totals.earlier and not (args.agent or args.kind or args.search):
            print(f"no attempt of this epoch yet; {_earlier(totals)}")
        else:
            print(_nothing(args, totals))
        return 0
    out = console()
    out.print(leaderboard(lines, view, out.width))
    _remainder(view, args, len(lines))
    return 0


def _nothing(args: argparse.Namespace, totals: query.Totals) -> str:
    """Why no attempt is listed."""
    if not totals.attempts + totals.unreadable:
        return "no attempt yet"
    if args.agent or args.kind or args.search or not totals.unscored:
        return "no attempt matches"
    return f"no attempt has a score: {totals.unscored} without one; `coral log --failures` groups them by their reason"


def _failures(view: RunView, wanted: Wanted, most: int | None, *, as_json: bool) -> int:
    """The kinds of failures, the most frequent first."""
    groups = view.index.ask(lambda rows: query.failures(rows, wanted))[:most]
    if as_json:
        return print_json(
            [{"reason": group.reason, "count": len(group.numbers), "attempts": group.numbers} for group in groups]
        )
    if not groups:
        print("no attempt of this epoch failed" if view.epoch > 1 else "no attempt failed")
        return 0
    rows = [[str(len(group.numbers)), _numbered(group.numbers), format.line(group.reason)] for group in groups]
    print_table((">failed", "attempts", "reason*"), rows)
    return 0


def _numbered(numbers: Sequence[int]) -> str:
    """The latest few, newest first."""
    shown = ", ".join(f"#{number}" for number in numbers[: -SHOWN - 1 : -1])
    return shown + (" …" if len(numbers) > SHOWN else "")


def leaderboard(lines: Iterable[Line], view: RunView, width: int) -> Table:
    """The lines as a table; the best attempt of the fleet stands out, unless that is the seed."""
    lines = list(lines)
    left_out = () if any(len(line.scores) > 1 for line in lines) else MEASURED_AGAIN
    columns = [column for column in COLUMNS if column not in left_out]
    rows = [dict(zip(COLUMNS, _row(line, view), strict=True)) for line in lines]
    return table(columns, [[row[column] for column in columns] for row in rows], width)


def _row(line: Line, view: RunView) -> list[str | Text]:
    attempt = line.attempt
    earlier = attempt.epoch < view.epoch
    again = len(line.scores) > 1
    middle = median(line.scores) if again else attempt.score
    kind = "" if attempt.kind in (Kind.REAL, Kind.CONFIRM) else f" {attempt.kind}"
    reason = f" · {format.line(attempt.reason)}" if attempt.score is None and attempt.reason else ""
    return [
        str(attempt.number),
        Text(format.score(attempt.score), style="bold green" if attempt.number == view.proven else ""),
        format.score(middle) if again else "",
        format.score(mean(line.scores)) if again else "",
        f"{deviation(line.scores):.2g}" if again else "",
        str(len(line.scores)) if again else "",
        format.delta(middle, view.baseline) if attempt.kind is not Kind.BASELINE and not earlier else "",
        Text.assemble(
            _verdict(attempt, kind, view), dim(f", epoch {attempt.epoch}" if earlier else ""), _open(attempt)
        ),
        attempt.agent,
        format.ago(attempt.published_at),
        Text.assemble(format.line(attempt.title), dim(reason)),
    ]


def _open(attempt: Attempt) -> str:
    """Marks a score that code of the candidate may have written itself."""
    return ", open" if attempt.channel == OPEN and attempt.score is not None else ""


def _verdict(attempt: Attempt, kind: str, view: RunView) -> Text:
    """As it was graded; an attempt whose lead was proven later is the best all the same."""
    if attempt.kind is Kind.BASELINE:
        return dim("the seed")
    is_later = attempt.number == view.proven and attempt.verdict is not Verdict.NEW_BEST
    proven = (", the best", "green") if is_later else ""
    return Text.assemble(verdict_text(attempt), proven, dim(kind))


def _data(line: Line) -> dict[str, object]:
    return {**to_dict(line.attempt), **measured_again(line.scores)}


def _print_csv(lines: Sequence[Line]) -> int:
    """The fields of the records, then what several grades come to, then `metrics.NAME`; an empty field is no value."""
    rows = [_flat(line) for line in lines]
    names = dict.fromkeys([*(name for name in Attempt.__slots__ if name != "metrics"), *MEASURED])
    metrics = sorted({name for row in rows for name in row} - names.keys())
    writer = csv.DictWriter(sys.stdout, [*names, *metrics], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return 0


def _flat(line: Line) -> dict[str, object]:
    data = to_dict(line.attempt)
    metrics = {f"metrics.{name}": value for name, value in line.attempt.metrics.items()}
    measured = dict(summary(line.scores)) if line.scores else {}
    return {**{name: value for name, value in data.items() if name != "metrics"}, **measured, **metrics}


def measured_again(scores: Sequence[float]) -> dict[str, object]:
    """For programs: what several grades of an attempt come to; empty where there is one."""
    return {"measured": summary(scores)} if len(scores) > 1 else {}


def ranking(view: RunView, wanted: Wanted, most: int | None) -> list[Line]:
    """Every candidate by its standing. What has no score cannot be ranked."""
    found = view.index.shown(lambda rows: query.ranked(rows, wanted, view.direction, most))
    lines = [Line(attempt, rank.scores) for rank, attempt in found]
    # Scores that differ by rounding alone are equal, and the lead is the earlier one.
    lead = view.status.inner("lead").integer("number")
    level = median(lines[0].scores) if lines else 0.0
    equal = [line for line in lines if abs(median(line.scores) - level) <= tiny(level)]
    return sorted(equal, key=lambda line: line.attempt.number != lead) + lines[len(equal) :]


def _recent(view: RunView, wanted: Wanted, most: int | None) -> list[Line]:
    """Newest number first, failed ones too."""
    found = view.index.shown(lambda rows: map(Named, islice(query.recent(rows, wanted), most)))
    return [Line(attempt) for _, attempt in found]


def _earlier(totals: query.Totals) -> str:
    earlier = format.plural(totals.earlier, "attempt")
    return f"{earlier} of an earlier epoch, which are not compared: `coral log --recent`"


def _remainder(view: RunView, args: argparse.Namespace, shown: int) -> None:
    """What the list leaves out, records that cannot be read, and why no more attempts will come."""
    if args.recent or args.agent or args.kind or args.search:
        return
    totals = view.index.ask(lambda rows: query.totals(rows, view.alone))
    notes = []
    count = totals.attempts - totals.earlier
    if count > shown:
        rest = f", {totals.unscored} without a score: `coral log --recent`" if totals.unscored else ": `coral log -n 0`"
        copies = "; those with the same files are listed once" if not args.n and not totals.unscored else rest
        notes.append(f"{format.plural(count, 'attempt')} in all{copies}")
    notes += [_earlier(totals)] if totals.earlier else []
    if totals.unreadable and not view.alone:
        notes.append(f"{format.plural(totals.unreadable, 'record')} cannot be read")
    if view.state == "stopped" and (reason := view.status.inner("reason").text("text")):
        notes.append(f"the run is over: {reason}")
    for note in notes:
        console().print(dim(note))
