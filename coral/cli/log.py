"""`coral log`: the leaderboard, or with --recent the latest attempts; --agent, --kind and --search narrow it down."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from rich.table import Table
from rich.text import Text

from attempts import board
from attempts.record import Attempt, Kind, to_dict
from coral.cli import where, words
from coral.cli.columns import table
from coral.cli.reading import Reading
from coral.cli.screen import console, dim, tone

COLUMNS = (">#", ".score", ".±seed?", "verdict", "agent", "when?", "title*")


@dataclass(frozen=True)
class Line:
    """One attempt as it is listed. `score` is the mean where it was measured several times."""

    attempt: Attempt
    score: float | None
    measurements: int = 1

    @staticmethod
    def of(standing: board.Standing) -> Line:
        """Twins of a deterministic grade are no measurements to speak of; confirmations are."""
        return Line(standing.attempt, standing.score, standing.measurements if standing.confirmed else 1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=20, metavar="N", help="at most this many (default 20); 0 is all")
    parser.add_argument("--recent", action="store_true", help="newest first, failed ones too, instead of best first")
    parser.add_argument("--agent", metavar="AGENT", help="only of this agent")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="only of this kind")
    parser.add_argument("--search", metavar="TEXT", help="only where title, reason or feedback hold TEXT")
    parser.add_argument("--json", action="store_true", help="for programs: the records")
    where.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    reading = Reading(where.run_of(args))
    most = args.n if args.n > 0 else None
    lines = list(islice(_recent(reading, args) if args.recent else _best(reading, args), most))
    if args.json:
        print(json.dumps([to_dict(line.attempt) for line in lines], indent=1))
        return 0
    if not lines:
        print("no attempt yet" if not reading.store.numbers() else "no attempt is like that")
        return 0
    out = console()
    out.print(leaderboard(lines, reading, out.width))
    _remainder(reading, args, len(lines))
    return 0


def leaderboard(lines: Iterable[Line], reading: Reading, width: int) -> Table:
    """The lines as a table; the best attempt of the fleet stands out."""
    best = reading.status.inner("best").integer("number")
    return table(COLUMNS, [_row(line, reading.baseline, best) for line in lines], width)


def _row(line: Line, seed: float | None, best: int | None) -> list[str | Text]:
    attempt = line.attempt
    score = words.score(line.score) + (f" ×{line.measurements}" if line.measurements > 1 else "")
    kind = "" if attempt.kind is Kind.REAL else f" {attempt.kind}"
    said = f" {words.line(attempt.reason)}" if line.score is None and attempt.reason else ""
    return [
        str(attempt.number),
        Text(score, style="bold green" if attempt.number == best else ""),
        words.delta(line.score, seed) if attempt.kind is not Kind.BASELINE else "",
        Text.assemble(tone(attempt.verdict), dim(kind)) if attempt.kind is not Kind.BASELINE else dim("the seed"),
        attempt.agent,
        words.ago(attempt.published_at),
        Text.assemble(words.line(attempt.title), dim(said)),
    ]


def _best(reading: Reading, args: argparse.Namespace) -> Iterator[Line]:
    """Every candidate by its standing. What has no score cannot be ranked, unless it was asked for by its kind."""
    chosen = [attempt for attempt in reading.attempts if _fits(attempt, args)]
    if args.kind in (Kind.TUNE, Kind.BASELINE):
        scored = [attempt for attempt in chosen if attempt.score is not None]
        sign = -1.0 if reading.direction.better(1.0, 0.0) else 1.0
        yield from (Line(each, each.score) for each in sorted(scored, key=lambda each: sign * (each.score or 0.0)))
        return
    for standing in board.leaderboard(chosen, reading.direction, len(chosen)):
        yield Line.of(standing)


def _recent(reading: Reading, args: argparse.Namespace) -> Iterator[Line]:
    """Newest number first; only as many records are read as are shown."""
    for number in reversed(reading.store.numbers()):
        attempt = reading.attempt_or_none(number)
        if attempt is not None and _fits(attempt, args):
            yield Line(attempt, attempt.score)


def _fits(attempt: Attempt, args: argparse.Namespace) -> bool:
    if args.agent and attempt.agent != args.agent:
        return False
    if args.kind and attempt.kind != args.kind:
        return False
    said = "\n".join((attempt.title, attempt.reason, attempt.feedback)).casefold()
    return not args.search or str(args.search).casefold() in said


def _remainder(reading: Reading, args: argparse.Namespace, shown: int) -> None:
    """What the list leaves out, and the records that cannot be read."""
    if args.recent or args.agent or args.kind or args.search:
        return
    total = len(reading.attempts)
    failed = sum(attempt.score is None for attempt in reading.attempts)
    notes = []
    if total - 1 > shown:
        notes.append(f"{words.plural(total - 1, 'attempt')} in all, {failed} without a score: `coral log --recent`")
    unreadable = len(reading.store.numbers()) - total
    if unreadable and not reading.alone:
        notes.append(f"{words.plural(unreadable, 'record')} cannot be read")
    for note in notes:
        console().print(dim(note))
