"""Notes and skills as the commands show them: the fleet's, or those of each agent where agents do not share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from coral.cli.run_data.run_lookup import alone_in
from coral.cli.ui.console import dim
from coral.views import format
from workspace.layout import Layout
from workspace.notes import Note, NumberedNote, RawNote, find_notes, find_raw_notes

if TYPE_CHECKING:
    from workspace.knowledge import Skill

SYNTHESES = ("synthesis", "consolidation", "conclusions")


def folders(layout: Layout) -> list[Path]:
    """Every folder of knowledge: the shared one, and those of agents that work alone, which see only their own."""
    if agent := alone_in(layout):
        return [layout.shared_of(agent, share=False)]
    try:
        alone = sorted(path for path in (layout.root / "workspace" / "alone").iterdir() if path.is_dir())
    except OSError:
        alone = []
    return [layout.shared, *alone]


def all_notes(layout: Layout, query: str = "") -> list[Note]:
    """Oldest first, numbered from 1; only those in which every word of the query occurs."""
    return find_notes(folders(layout), query)


def all_raw_notes(layout: Layout, query: str = "") -> list[NumberedNote]:
    """The same, not parsed yet: that takes most of the time."""
    return find_raw_notes(folders(layout), query)


def all_skills(layout: Layout) -> list[Skill]:
    from workspace.knowledge import list_skills  # with it comes git, which notes do without

    return [skill for folder in folders(layout) for skill in list_skills(folder)]


def is_synthesis(note: Note) -> bool:
    """Whether a note draws conclusions from others: its kind says so, or, where it has none, its name."""
    kind = note.kind.casefold()
    return kind in SYNTHESES or (not kind and note.name.casefold().rpartition("/")[2].startswith(SYNTHESES))


def concludes(note: RawNote) -> bool:
    """The same for a note that was not read in full."""
    return note.may_mention(SYNTHESES) and is_synthesis(note.parse(0))


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
