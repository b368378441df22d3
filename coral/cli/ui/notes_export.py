"""Writes what a run has learned as Markdown: one page, or a folder with a page for each note.

The result may be published on a site, so control characters, HTML and images in notes are made ineffective.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from coral.cli.commands.status import heading
from coral.cli.ui.notes_page import body_of, reasons_against
from coral.errors import CoralError
from coral.reading.knowledge_view import KnowledgeView
from coral.views import format
from coral.views.evidence import NoteState
from workspace import frontmatter
from workspace.frontmatter import Value
from workspace.notes import Note

_PAGE = ".md"
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_CODE = re.compile(r"(`+[^`]*`+)")
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def export(knowledge: KnowledgeView, to: Path) -> int:
    """Write the notes to `to`; return the number of files. CoralError if something is there already, or it cannot be
    written."""
    if to.exists() and (not to.is_dir() or to.suffix == _PAGE or any(to.iterdir())):
        raise CoralError(f"cannot export to {to}: there is something already", "name a new folder or a new file")
    notes = [note for note in map(knowledge.parse, reversed(knowledge.notes)) if _is_current(knowledge, note)]
    try:
        if to.suffix == _PAGE:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text("\n\n".join(_one_page(knowledge, notes)) + "\n", encoding="utf-8", errors="replace")
            return 1
        (to / "notes").mkdir(parents=True, exist_ok=True)
        text = "\n\n".join(_front_page(knowledge, notes)) + "\n"
        (to / "README.md").write_text(text, encoding="utf-8", errors="replace")
        for note in notes:
            (to / _file(note)).write_text(_as_file(knowledge, note), encoding="utf-8", errors="replace")
    except OSError as error:
        raise CoralError(f"cannot export to {to}: {error.strerror}", "name a folder that can be written") from error
    return 1 + len(notes)


def harmless(text: str) -> str:
    """Return Markdown in which HTML and images are shown as text. Code stays as it is."""
    lines, fence = [], ""
    for line in format.clean(text).splitlines():
        found = _FENCE.match(line)
        if found and fence in ("", found[1]):
            fence = "" if fence else found[1]
        lines.append(line if fence or found else _harmless(line))
    return "\n".join(lines)


def _harmless(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(part if place % 2 else _TAG.sub("&lt;", part.replace("![", "[")) for place, part in enumerate(parts))


def _is_current(knowledge: KnowledgeView, note: Note) -> bool:
    """Whether a note is neither superseded nor an earlier synthesis."""
    replaced = note.is_synthesis and knowledge.synthesis is not None and note.number != knowledge.synthesis.number
    return not replaced and note.name not in knowledge.superseded


def _beginning(knowledge: KnowledgeView) -> Iterator[str]:
    view = knowledge.view
    yield f"# What {format.line(view.task)} has taught"
    yield "  \n".join(line.plain for line in heading(view))
    if (note := knowledge.synthesis) is not None:
        last = knowledge.as_of(note)
        yield f"## {harmless(note.title)}"
        yield harmless(body_of(note)).strip()
        yield "" if last is None else f"As of #{last}, of #{view.last_attempt or last}."
    if knowledge.conflicts:
        yield "## In conflict"
        yield "\n".join(f"- {harmless(c.claim.title)}, but {harmless(c.other.title)}" for c in knowledge.conflicts)


def _one_page(knowledge: KnowledgeView, notes: list[Note]) -> Iterator[str]:
    yield from _beginning(knowledge)
    for note in notes:
        if not note.is_synthesis:
            yield f"## {harmless(note.title)}"
            yield f"*{_byline(knowledge, note)}*"
            yield harmless(body_of(note)).strip()


def _front_page(knowledge: KnowledgeView, notes: list[Note]) -> Iterator[str]:
    yield from _beginning(knowledge)
    yield "## Notes"
    yield "\n".join(f"- [{_link_text(note)}]({_file(note)}): {_byline(knowledge, note)}" for note in notes)


def _as_file(knowledge: KnowledgeView, note: Note) -> str:
    front: dict[str, Value] = {"title": note.title, "author": note.author, "created": note.created, "kind": note.kind}
    front |= {"attempts": list(note.attempts), "about": list(note.about), "confidence": note.confidence}
    front |= {"state": knowledge.evidence(note).state.value}
    return frontmatter.write({key: value for key, value in front.items() if value}, harmless(note.body))


def _byline(knowledge: KnowledgeView, note: Note) -> str:
    evidence = knowledge.evidence(note)
    against = "; ".join(reasons_against(evidence))
    state = "" if evidence.state is NoteState.UNCHECKED else f"{evidence.state}{f' ({against})' if against else ''}"
    attempts = " ".join(f"#{number}" for number in note.attempts[:8])
    return harmless(", ".join(part for part in (note.kind, note.author, attempts, state) if part)) or "a note"


def _link_text(note: Note) -> str:
    return re.sub(r"[\[\]\\]", "", harmless(note.title))


def _file(note: Note) -> str:
    """Return the path of a note's page in the folder. It is made so that no name of a note can lead outside."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", note.name).strip("-").lower()[:60]
    return f"notes/{note.number:04d}-{words or 'note'}.md"
