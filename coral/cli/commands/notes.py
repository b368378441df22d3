"""`coral notes`: prints the latest synthesis in full, then what contradicts it and what is new; its options list or
read other notes."""

import argparse
import re
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

from coral.cli.parser import Parser, count, print_json
from coral.cli.run_data import run_lookup
from coral.cli.ui.notes_page import AGAINST, print_in_full, print_list, print_page
from coral.cli.ui.table import console, print_table
from coral.errors import CoralError
from coral.reading.knowledge_view import KnowledgeView, nested
from coral.reading.run_view import RunView
from coral.views import format
from workspace.layout import Layout
from workspace.notes import Note, NumberedNote

RECENT = 5
CHANGES = 20
_AGO = re.compile(r"(\d{1,6})\s*([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def add_arguments(parser: Parser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--read", metavar="N", help="one note, by its number or its name")
    what.add_argument("--all", action="store_true", help="all notes, the latest first")
    what.add_argument("--since", metavar="WHEN", help="notes written since: 2h, 3d, a date, or an attempt (#17)")
    what.add_argument("--about", metavar="NAME", help="notes about a file, a parameter or a technique")
    what.add_argument("--recent", nargs="?", type=count, const=RECENT, metavar="N", help="the last N notes in full (5)")
    what.add_argument("--search", metavar="TEXT", help="notes in which every word of TEXT occurs")
    what.add_argument("--disputed", action="store_true", help="notes that the records speak against: disputed, stale")
    what.add_argument("--dead-ends", action="store_true", help="what is known not to work")
    what.add_argument("--history", action="store_true", help="the latest changes of notes and skills")
    parser.add_argument("--json", action="store_true", help="for programs")
    run_lookup.add_arguments(parser)
    verbs = parser.verbs()
    compare = verbs.add_parser("diff", help="what changed between two syntheses (default: the last two)", example="")
    compare.add_argument("old", nargs="?", metavar="OLD", help="a note, by its number or its name")
    compare.add_argument("new", nargs="?", metavar="NEW", help="another one (default: the last synthesis)")
    export = verbs.add_parser("export", help="write what was learned as Markdown", example="learned.md")
    export.add_argument("to", metavar="DIR|FILE.md", help="a new folder, or one page")
    for verb in (compare, export):
        run_lookup.add_arguments(verb, argparse.SUPPRESS)
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for programs")


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    if args.history:
        return _history(layout, args.json)
    knowledge = KnowledgeView(RunView(layout))
    if args.verb == "diff":
        return _diff(args, knowledge)
    if args.verb == "export":
        from coral.cli.ui.notes_export import export

        written = export(knowledge, Path(args.to))
        return print_json({"written": written}) if args.json else _say(f"{format.plural(written, 'file')} in {args.to}")
    chosen = _chosen(args, knowledge)
    if args.json:
        return print_json([nested(knowledge.judged(note)) for note in chosen])
    if not chosen:
        return _say(_nothing(args))
    _print(args, knowledge, chosen)
    return 0


def _chosen(args: argparse.Namespace, knowledge: KnowledgeView) -> list[NumberedNote]:
    """Return the notes that the options select, latest first; without options all notes."""
    if args.read:
        return [_named(knowledge.notes, args.read)]
    if args.recent is not None:
        return knowledge.notes[-max(args.recent, 1) :][::-1]
    if args.search:
        wanted = args.search.casefold().split()
        return [note for note in reversed(knowledge.notes) if note[1].contains(wanted)]
    if args.about:
        return knowledge.about(args.about)[::-1]
    if args.since:
        return knowledge.since(_moment(args.since, knowledge.view))[::-1]
    if args.dead_ends:
        numbers = {note.number for note in knowledge.dead_ends}
        return [note for note in reversed(knowledge.notes) if note[0] in numbers]
    if args.disputed:
        return [note for note in reversed(knowledge.notes) if _is_against(knowledge, knowledge.parse(note))]
    return knowledge.notes[::-1]


def _is_against(knowledge: KnowledgeView, note: Note) -> bool:
    """Return whether a note is disputed or stale. An earlier synthesis never is, since the last one replaces it."""
    replaced = note.is_synthesis and knowledge.synthesis is not None and note.number != knowledge.synthesis.number
    return not replaced and knowledge.evidence(note).state in AGAINST


def _print(args: argparse.Namespace, knowledge: KnowledgeView, chosen: list[NumberedNote]) -> None:
    out = console()
    if args.read or args.recent is not None:
        print_in_full(out, knowledge, [knowledge.parse(note) for note in chosen])
    elif args.all or args.search or args.about or args.since or args.dead_ends or args.disputed:
        print_list(out, knowledge, chosen, len(chosen))
    else:
        now = time.time()
        print_page(out, knowledge, knowledge.last_look)
        knowledge.mark_look(now)


def _nothing(args: argparse.Namespace) -> str:
    if args.disputed:
        return "no note is disputed or stale"
    if args.dead_ends:
        return "no dead ends yet: a note of the kind `dead-end` is one"
    if args.about:
        return f"no note is about {format.line(args.about)}"
    if args.since:
        return "no note is as new as that"
    return "no note contains these words" if args.search else "no notes yet: agents write them as they reflect"


def _say(text: str) -> int:
    print(text)
    return 0


def _moment(text: str, view: RunView) -> float:
    """Parse a time that a person typed; return seconds since the epoch."""
    if (ago := _AGO.fullmatch(text.strip())) is not None:
        return time.time() - int(ago[1]) * _SECONDS[ago[2]]
    try:
        if text.startswith("#") or text.isdecimal():
            return datetime.fromisoformat(view.attempt(int(text.removeprefix("#"))).published_at).timestamp()
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        hint = "how long ago (30m, 2h, 3d), a date (2026-01-31), or an attempt (#17)"
        raise CoralError(f"cannot tell when {text!r} is", hint) from None


def _named(notes: list[NumberedNote], name: str) -> NumberedNote:
    wanted = name.removeprefix("#")
    for number, note in notes:
        if wanted == note.name or (wanted.isdecimal() and int(wanted) == number):
            return number, note
    what = f"the last is {notes[-1][0]}" if notes else "there are none yet"
    raise CoralError(f"cannot read note {name!r}: there is none of that number or name", f"`coral notes` lists; {what}")


def _diff(args: argparse.Namespace, knowledge: KnowledgeView) -> int:
    from coral.cli.ui.notes_diff import changes, print_changes

    latest = knowledge.syntheses[-2:]
    if len(latest) == 1 and not args.old:
        latest = [*_before(latest[0], knowledge.view.layout), *latest]
    if len(latest) < 2 - bool(args.old) - bool(args.new):
        what = "there is one" if latest else "there is none"
        raise CoralError(f"cannot compare two syntheses: {what} yet", "name two notes: coral notes diff OLD NEW")
    old = _named(knowledge.notes, args.old) if args.old else latest[0]
    new = _named(knowledge.notes, args.new) if args.new else latest[-1]
    found = changes(knowledge.parse(old), knowledge.parse(new))
    if args.json:
        sections = [asdict(change) for change in found]
        return print_json({"old": old[1].name, "new": new[1].name, "sections": sections})
    print_changes(console(), knowledge.parse(old), knowledge.parse(new), found)
    return 0


def _before(note: NumberedNote, layout: Layout) -> list[NumberedNote]:
    """Return the last earlier version of a note with another text, from the history of the notes; empty if there is
    none."""
    from workspace.history import versions  # here, since it imports git, which the others do not need

    number, raw = note
    path, now = Path(raw.path), raw.text
    if not path.is_relative_to(layout.shared):
        return []  # the note of an agent that works alone: the history is of the shared folder alone
    earlier = versions(layout.history, path.relative_to(layout.shared).as_posix())
    return [(number, replace(raw, text=then, created=at)) for at, then in earlier if then != now][:1]


def _history(layout: Layout, as_json: bool) -> int:
    from workspace.history import history  # here, since it imports git, which the others do not need

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
