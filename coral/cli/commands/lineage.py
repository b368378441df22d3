"""`coral lineage`: shows as a tree which attempt was built on which; for one attempt, what it was built on and what was
built on it."""

import argparse

from rich.text import Text

from attempts.index import history
from attempts.record import Attempt, Kind
from coral.cli.parser import attempt_number, count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.table import console, dim, tone
from coral.errors import CoralError
from coral.reading.run_view import RunView
from coral.views import format
from coral.views.family import FamilyTree, Leaf

SHOWN = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = "this attempt: what it was built on, and what was built on it (default: the best and the agents' own bests)"
    parser.add_argument("number", nargs="?", type=attempt_number, metavar="N", help=what)
    parser.add_argument(
        "-n", type=count, default=SHOWN, metavar="N", help=f"at most this many (default {SHOWN}); 0 is all"
    )
    parser.add_argument("--json", action="store_true", help="for programs: number, parent, agent, verdict, score")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    most = args.n if args.n > 0 else None
    record = None if args.number is None else view.attempt(args.number, "show the lineage of")
    family = FamilyTree(view.index.ask(lambda rows: history.family(rows, view.only_agent)), view.direction)
    chosen = _chosen(view, family, record, most)
    if record is not None and not chosen:
        why = f"it is of epoch {record.epoch}, and this is epoch {view.epoch}"
        hint = f"`coral show {record.number}` shows what it was built on"
        raise CoralError(f"cannot show the lineage of #{record.number}: {why}", hint)
    if args.json:
        on_line = set(family.line(view.best)) if view.best is not None else set()
        return print_json([_data(family, number, on_line) for number in sorted(chosen)])
    if not chosen:
        print("no attempt yet")
        return 0
    _print(view, family, chosen, args.number)
    return 0


def _chosen(view: RunView, family: FamilyTree, record: Attempt | None, most: int | None) -> list[int]:
    if record is not None:
        of = record.of if record.kind is Kind.CONFIRM and record.of is not None else record.number
        return family.around(of, most)
    return family.of_run(view.best, [number for _, number in view.own_bests], most)


def _print(view: RunView, family: FamilyTree, chosen: list[int], asked: int | None) -> None:
    out = console()
    leaves = list(family.layout(chosen, view.best))
    scores = dict(zip(chosen, format.scores([family.members[number].score for number in chosen]), strict=True))
    on_line = set(family.line(view.best)) if view.best is not None else set()
    wide = max(len(f"{leaf.prefix}#{leaf.child.number}") for leaf in leaves)
    for leaf in leaves:
        number = leaf.child.number
        name = Text.assemble(dim(leaf.prefix), (f"#{number}", _style(number, on_line, asked)))
        name.append(" " * (wide - len(f"{leaf.prefix}#{number}")))
        who = f"{leaf.child.agent or 'the seed':<9}"
        line = Text.assemble(name, f"  {scores[number]:<11}  {who}  ", _says(view, leaf))
        out.print(line, overflow="ellipsis", no_wrap=True)
    left = len(family.members) - len(leaves)
    if left > 0:
        out.print(dim(f"{format.plural(left, 'more attempt')}: -n 0 shows all, `coral lineage N` those around one"))


def _style(number: int, on_line: set[int], asked: int | None) -> str:
    if number == asked:
        return "bold reverse"
    return "bold green" if number in on_line else ""


def _says(view: RunView, leaf: Leaf) -> Text:
    record = view.attempt_or_none(leaf.child.number)
    if leaf.child.number == view.best:
        verdict = Text("the best", style="bold green")
    elif not leaf.child.agent:
        verdict = Text("")
    else:
        verdict = tone(leaf.child.verdict)
    verdict.append(" " * max(0, 8 - len(verdict)))
    about = _about(leaf)
    title = format.line(record.title, 80) if record and leaf.child.agent else ""
    return Text.assemble(verdict, "  ", dim(f"{about}  " if about else ""), title)


def _about(leaf: Leaf) -> str:
    parts = [
        f"{leaf.between} between" if leaf.between else "",
        f"{leaf.hidden} more built on it" if leaf.hidden else "",
    ]
    text = ", ".join(part for part in parts if part)
    return f"({text})" if text else ""


def _data(family: FamilyTree, number: int, on_line: set[int]) -> dict[str, object]:
    child = family.members[number]
    return {
        "number": number,
        "parent": child.parent,
        "agent": child.agent,
        "verdict": child.verdict,
        "score": child.score,
        "on_the_line_of_the_best": number in on_line,
    }
