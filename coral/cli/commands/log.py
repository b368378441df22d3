"""`coral log`: the leaderboard, or with --recent the latest attempts; --agent, --kind and --search narrow it down."""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from rich.text import Text

from attempts.index import query
from attempts.index.query import Named, Wanted
from attempts.record import Attempt, Kind, to_dict
from coral.cli.commands.tell import check_agent
from coral.cli.parser import count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.table import Table, console, dim, table, tone
from coral.views import format

COLUMNS = (">#", ".score", ".±seed?", "verdict", "agent", "when?", "title*")


@dataclass(frozen=True)
class Line:
    """One attempt as it is listed. `score` is the mean where it was measured several times."""

    attempt: Attempt
    score: float | None
    measurements: int = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=count, default=20, metavar="N", help="at most this many (default 20); 0 is all")
    parser.add_argument("--recent", action="store_true", help="newest first, failed ones too, instead of best first")
    parser.add_argument("--agent", metavar="AGENT", help="only of this agent")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="only of this kind")
    where = "only where the title, the reason or the feedback contains TEXT"
    parser.add_argument("--search", metavar="TEXT", help=where)
    parser.add_argument("--json", action="store_true", help="for programs: the records")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    most = args.n if args.n > 0 else None
    wanted = Wanted(args.agent or "", args.kind and Kind(args.kind), args.search or "", view.alone)
    lines = _recent(view, wanted, most) if args.recent else ranking(view, wanted, most)
    if not lines and view.agents():
        check_agent(view, args.agent)
    if args.json:
        return print_json([to_dict(line.attempt) for line in lines])
    if not lines:
        totals = view.index.ask(query.totals)
        print("no attempt matches" if totals.attempts + totals.unreadable else "no attempt yet")
        return 0
    out = console()
    out.print(leaderboard(lines, view, out.width))
    _remainder(view, args, len(lines))
    return 0


def leaderboard(lines: Iterable[Line], view: RunView, width: int) -> Table:
    """The lines as a table; the best attempt of the fleet stands out."""
    best = view.status.inner("best").integer("number")
    return table(COLUMNS, [_row(line, view.baseline, best) for line in lines], width)


def _row(line: Line, seed: float | None, best: int | None) -> list[str | Text]:
    attempt = line.attempt
    score = format.score(line.score) + (f" ×{line.measurements}" if line.measurements > 1 else "")
    kind = "" if attempt.kind is Kind.REAL else f" {attempt.kind}"
    reason = f" · {format.line(attempt.reason)}" if line.score is None and attempt.reason else ""
    return [
        str(attempt.number),
        Text(score, style="bold green" if attempt.number == best else ""),
        format.delta(line.score, seed) if attempt.kind is not Kind.BASELINE else "",
        Text.assemble(tone(attempt.verdict), dim(kind)) if attempt.kind is not Kind.BASELINE else dim("the seed"),
        attempt.agent,
        format.ago(attempt.published_at),
        Text.assemble(format.line(attempt.title), dim(reason)),
    ]


def ranking(view: RunView, wanted: Wanted, most: int | None) -> list[Line]:
    """Every candidate by its standing. What has no score cannot be ranked."""
    found = view.index.shown(lambda rows: query.ranked(rows, wanted, view.direction, most))
    # Only confirmations are measurements: equal trees of a deterministic grader take the same score.
    return [Line(attempt, rank.score, rank.measurements if rank.confirmed else 1) for rank, attempt in found]


def _recent(view: RunView, wanted: Wanted, most: int | None) -> list[Line]:
    """Newest number first, failed ones too."""
    found = view.index.shown(lambda rows: map(Named, islice(query.recent(rows, wanted), most)))
    return [Line(attempt, attempt.score) for _, attempt in found]


def _remainder(view: RunView, args: argparse.Namespace, shown: int) -> None:
    """What the list leaves out, records that cannot be read, and why no more attempts will come."""
    if args.recent or args.agent or args.kind or args.search:
        return
    totals = view.index.ask(lambda rows: query.totals(rows, view.alone))
    others = totals.attempts - 1
    notes = []
    if others > shown:
        rest = f", {totals.unscored} without a score: `coral log --recent`" if totals.unscored else ": `coral log -n 0`"
        notes.append(f"{format.plural(others, 'attempt')} in all{rest}")
    if totals.unreadable and not view.alone:
        notes.append(f"{format.plural(totals.unreadable, 'record')} cannot be read")
    if view.state == "stopped" and (reason := view.status.inner("reason").text("text")):
        notes.append(f"the run is over: {reason}")
    for note in notes:
        console().print(dim(note))
