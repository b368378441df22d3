"""`coral log`: prints the leaderboard, or with --recent the latest attempts; --agent, --kind and --search filter
them."""

import argparse
import csv
import sys
from collections.abc import Iterable, Sequence

from rich.text import Text

from attempts.index import query
from attempts.index.query import Wanted
from attempts.noise import deviation, mean, median
from attempts.record import OPEN, Attempt, Kind, Verdict
from coral.cli.commands.tell import check_agent
from coral.cli.parser import count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.table import Table, console, dim, print_table, table, verdict_text
from coral.errors import CoralError
from coral.reading.attempt_rows import COLUMNS as FIELDS, MeasuredAttempt, flat, nested, ranking, recent
from coral.reading.run_view import RunView
from coral.views import format

COLUMNS = (">#", ".score", ".median", ".mean?", ".±sd", ">n", ".±seed?", "verdict", "agent", "when?", "title*")
NOT_COMPARED = (Kind.BASELINE, Kind.TUNE)  # a trial of numbers may be graded by another rule
SHOWN = 5  # attempts that are named for one reason of failure
MEASURED_AGAIN = (".median", ".mean?", ".±sd", ">n")  # left out where every attempt was graded once


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
    wanted = Wanted(args.agent or "", args.kind and Kind(args.kind), args.search or "", view.only_agent)
    if args.failures:
        if args.csv:
            raise CoralError("cannot print failures as CSV: they are groups", "use --json, or --recent --csv")
        return _failures(view, wanted, most, as_json=args.json)
    lines = recent(view, wanted, most) if args.recent else ranking(view, wanted, most)
    if not lines and view.agents():
        check_agent(view, args.agent)
    if args.json:
        return print_json([nested(line) for line in lines])
    if args.csv:
        return _print_csv(lines)
    if not lines:
        totals = view.index.ask(lambda rows: query.totals(rows, view.only_agent))
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
    """Return why no attempt is listed."""
    if not totals.attempts + totals.unreadable:
        return "no attempt yet"
    if args.agent or args.kind or args.search or not totals.unscored:
        return "no attempt matches"
    return f"no attempt has a score: {totals.unscored} without one; `coral log --failures` groups them by their reason"


def _failures(view: RunView, wanted: Wanted, most: int | None, *, as_json: bool) -> int:
    """Print the reasons of failures, the most frequent first."""
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
    """Return the latest SHOWN numbers as text, newest first."""
    shown = ", ".join(f"#{number}" for number in numbers[: -SHOWN - 1 : -1])
    return shown + (" …" if len(numbers) > SHOWN else "")


def leaderboard(lines: Iterable[MeasuredAttempt], view: RunView, width: int) -> Table:
    """Return the attempts as a table. The proven best stands out, unless it is the seed."""
    lines = list(lines)
    left_out = () if any(len(line.scores) > 1 for line in lines) else MEASURED_AGAIN
    columns = [column for column in COLUMNS if column not in left_out]
    rows = [dict(zip(COLUMNS, _row(line, view), strict=True)) for line in lines]
    return table(columns, [[row[column] for column in columns] for row in rows], width)


def _row(line: MeasuredAttempt, view: RunView) -> list[str | Text]:
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
        format.delta(middle, view.baseline) if attempt.kind not in NOT_COMPARED and not earlier else "",
        Text.assemble(
            _verdict(attempt, kind, view), dim(f", epoch {attempt.epoch}" if earlier else ""), _open(attempt)
        ),
        attempt.agent,
        format.ago(attempt.published_at),
        Text.assemble(format.line(attempt.title), dim(reason)),
    ]


def _open(attempt: Attempt) -> str:
    """Return a mark for a score that code of the candidate may have written itself; else an empty text."""
    return ", open" if attempt.channel == OPEN and attempt.score is not None else ""


def _verdict(attempt: Attempt, kind: str, view: RunView) -> Text:
    """Return the verdict at the time of the grade; an attempt that was proven to be the best only later is marked as
    such."""
    if attempt.kind is Kind.BASELINE:
        return dim("the seed")
    is_later = attempt.number == view.proven and attempt.verdict is not Verdict.NEW_BEST
    proven = (", the best", "green") if is_later else ""
    return Text.assemble(verdict_text(attempt), proven, dim(kind))


def _print_csv(lines: Sequence[MeasuredAttempt]) -> int:
    """Print the columns of `flat` as CSV. An empty field means that there is no value."""
    rows = [flat(line) for line in lines]
    metrics = sorted({name for row in rows for name in row}.difference(FIELDS))
    writer = csv.DictWriter(sys.stdout, [*FIELDS, *metrics], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return 0


def _earlier(totals: query.Totals) -> str:
    earlier = format.plural(totals.earlier, "attempt")
    return f"{earlier} of an earlier epoch, which are not compared: `coral log --recent`"


def _remainder(view: RunView, args: argparse.Namespace, shown: int) -> None:
    """Print what the list leaves out, how many records cannot be read, and why no more attempts will come."""
    if args.recent or args.agent or args.kind or args.search:
        return
    totals = view.index.ask(lambda rows: query.totals(rows, view.only_agent))
    notes = []
    count = totals.attempts - totals.earlier
    if count > shown:
        # A list that is not cut leaves out trials of numbers, and copies of what it has.
        every = "`coral log -n 0`" if args.n and shown >= args.n else "`coral log --recent -n 0` lists each"
        rest = f", {totals.unscored} without a score: `coral log --recent`" if totals.unscored else f": {every}"
        notes.append(f"{format.plural(count, 'attempt')} in all{rest}")
    notes += [_earlier(totals)] if totals.earlier else []
    if totals.unreadable and not view.only_agent:
        notes.append(f"{format.plural(totals.unreadable, 'record')} cannot be read")
    if view.state == "stopped" and (reason := view.status.inner("reason").text("text")):
        notes.append(f"the run is over: {reason}")
    for note in notes:
        console().print(dim(note))
