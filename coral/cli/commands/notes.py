"""`coral notes`: what the agents concluded first, in full; below it the notes it was drawn from."""

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from coral.cli.parser import count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.run_lookup import alone_in
from coral.cli.run_data.run_view import RunView
from coral.cli.ui.table import console, dim, print_table, print_title, table
from coral.errors import CoralError
from coral.views import format
from coral.views.evidence import Evidence, check_evidence
from workspace.claims import LATEST, claims_of
from workspace.layout import Layout
from workspace.notes import Note, NumberedNote, find_raw_notes

LISTED = 15
RECENT = 5
CHANGES = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--read", metavar="N", help="one note, by its number or its name")
    what.add_argument("--recent", nargs="?", type=count, const=RECENT, metavar="N", help="the last N notes in full (5)")
    what.add_argument("--search", metavar="TEXT", help="notes in which every word of TEXT occurs")
    what.add_argument("--disputed", action="store_true", help="notes with a figure that the records do not bear out")
    what.add_argument("--history", action="store_true", help="the latest changes of notes and skills")
    parser.add_argument("--json", action="store_true", help="for programs")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    if args.history:
        return _history(layout, args.json)
    notes = find_raw_notes(folders(layout), args.search or "")  # parsed later: that takes most of the time
    view = RunView(layout)
    if args.disputed:
        chosen = [note for note in notes[::-1] if evidence_of(view, note[1].parse(note[0])).disputed]
    elif args.read:
        chosen = [_named(notes, args.read)]
    elif args.recent is not None:
        chosen = notes[-max(args.recent, 1) :][::-1]
    else:
        chosen = notes[::-1]
    if args.json:
        return print_json(list(_as_json(view, _parse(chosen))))
    if not chosen:
        print(_nothing(args))
        return 0
    out = console()
    if args.read or args.recent is not None:
        _in_full(out, view, _parse(chosen))
    elif args.search or args.disputed:
        _list(out, view, chosen, len(chosen))
    else:
        _overview(out, view, chosen)
    return 0


def _as_json(view: RunView, notes: list[Note]) -> Iterator[dict[str, object]]:
    for note in notes:
        yield {**asdict(note), "synthesis": note.is_synthesis, "evidence": asdict(evidence_of(view, note))}


def _nothing(args: argparse.Namespace) -> str:
    if args.disputed:
        return "no note has a figure that the records do not bear out"
    return "no note contains these words" if args.search else "no notes yet: agents write them as they reflect"


def evidence_of(view: RunView, note: Note) -> Evidence:
    """What the records say of the note's figures."""
    if view.alone:
        return Evidence()  # it cannot see the attempts that others may have told it of
    return check_evidence(note, view.store.find, view.direction)


def _parse(notes: list[NumberedNote]) -> list[Note]:
    return [note.parse(number) for number, note in notes]


def _overview(out: Console, view: RunView, notes: list[NumberedNote]) -> None:
    """The latest synthesis in full, earlier ones and the latest other notes by title."""
    syntheses = [note for note in notes if note[1].is_synthesis]
    known = {number for number, _ in syntheses}
    others = [note for note in notes if note[0] not in known]
    _in_full(out, view, _parse(syntheses[:1]))
    _say_claims(out, notes)
    if syntheses[1:]:
        print_title(out, "Earlier conclusions")
        _list(out, view, syntheses[1:], RECENT)
    if others:
        if syntheses:
            print_title(out, "Notes")
        _list(out, view, others, LISTED)
    out.print()
    out.print(dim("coral notes --read N reads one, --recent the last few, --search TEXT finds"))


def _say_claims(out: Console, notes: list[NumberedNote]) -> None:
    """What each agent has taken up."""
    claiming = [note for note in notes[:LATEST] if note[1].may_mention(("claims",))]
    if claims := claims_of(_parse(claiming)):
        print_title(out, "Taken up")
        rows = [[claim.agent, claim.gap, format.ago(claim.created), claim.note] for claim in claims]
        out.print(table(("agent", "what*", "since", "note*??"), rows, out.width))


def _in_full(out: Console, view: RunView, notes: list[Note]) -> None:
    from coral.cli.ui.markdown import markdown  # takes as long to load as all the rest

    for place, note in enumerate(notes):
        if place:
            out.print()
        out.print(Rule(title_line(note), align="left", style="cyan" if note.is_synthesis else "dim"))
        out.print(markdown(body_of(note)))
        _say_evidence(out, evidence_of(view, note))


def _say_evidence(out: Console, evidence: Evidence) -> None:
    """The records beside the figures of a note; nothing where it has none that can be compared."""
    if evidence.agreeing:
        figures = "1 figure agrees" if evidence.agreeing == 1 else f"{evidence.agreeing} figures agree"
        out.print(dim(f"{figures} with the records"))
    for problem in evidence.disputed:
        out.print(Text.assemble(("disputed  ", "yellow"), format.line(problem)))


def _list(out: Console, view: RunView, notes: list[NumberedNote], most: int) -> None:
    rows = []
    for note in _parse(notes[:most]):
        title = Text(note.title, style="bold cyan" if note.is_synthesis else "dim" if note.superseded_by else "")
        if note.superseded_by:
            title.append(f" (superseded by {note.superseded_by})")
        if evidence_of(view, note).disputed:
            title.append(" (disputed)", "yellow")
        attempts = " ".join(f"#{number}" for number in note.attempts[:6])
        rows.append([str(note.number), title, note.author, format.ago(note.created), attempts])
    out.print(table((">n", "title*", "author", "written?", "attempts*??"), rows, out.width))
    if len(notes) > most:
        out.print(dim(f"{len(notes) - most} more: coral notes --recent {len(notes)}"))


def _named(notes: list[NumberedNote], name: str) -> NumberedNote:
    wanted = name.removeprefix("#")
    for number, note in notes:
        if wanted == note.name or (wanted.isdecimal() and int(wanted) == number):
            return number, note
    what = f"the last is {notes[-1][0]}" if notes else "there are none yet"
    raise CoralError(f"cannot read note {name!r}: there is none of that number or name", f"`coral notes` lists; {what}")


def _history(layout: Layout, as_json: bool) -> int:
    from workspace.history import history  # with it comes git, which the others do without

    changes = history(layout.history, CHANGES)
    if as_json:
        shown = ("at", "message", "files")
        return print_json([{name: getattr(change, name) for name in shown} for change in changes])
    if not changes:
        print("no history yet")
        return 0
    cells = [
        [format.ago(change.at), format.line(change.message), format.line(", ".join(change.files))] for change in changes
    ]
    print_table(("when", "change*", "files*"), cells)
    return 0


def folders(layout: Layout) -> list[Path]:
    """Every folder of knowledge: the shared one, and those of agents that work alone, which see only their own."""
    if agent := alone_in(layout):
        return [layout.shared_of(agent, share=False)]
    try:
        alone = sorted(path for path in (layout.root / "workspace" / "alone").iterdir() if path.is_dir())
    except OSError:
        alone = []
    return [layout.shared, *alone]


def title_line(note: Note) -> Text:
    """A note in one line: number, title, author, age, the attempts it rests on."""
    about = [part for part in (note.author, format.ago(note.created), _attempts(note)) if part]
    return Text.assemble(dim(f"{note.number}  "), (note.title, "bold"), dim("  " + " · ".join(about)))


def _attempts(note: Note) -> str:
    shown = " ".join(f"#{number}" for number in note.attempts[:8])
    return shown + (" …" if len(note.attempts) > 8 else "")


def body_of(note: Note) -> str:
    """The body without a first heading that only repeats the title."""
    first, _, rest = note.body.lstrip().partition("\n")
    return rest if first.startswith("#") and first.lstrip("# ").strip() == note.title else note.body
