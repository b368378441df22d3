"""Writes what a run has learned as Markdown: one page, or a folder with a page for each note.

The result may be published on a site, so control characters, HTML and images in notes are made ineffective.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from coral.cli.commands.status import heading
from coral.cli.ui.notes_page import body_of, current_text, reasons_against
from coral.errors import CoralError
from coral.reading.knowledge_view import KnowledgeView
from coral.views import format
from coral.views.evidence import NoteState
from workspace import frontmatter
from workspace.frontmatter import Value
from workspace.notes import Note

_PAGE = ".md"
_RISKY = re.compile(r"<(?=[A-Za-z/!?])|!(?=\[)")  # how HTML and images begin
_ESCAPED = {"<": "&lt;", "!": "&#33;"}
_BEGIN, _END = "\ufdd0", "\ufdd1"  # around a position; these are no characters, so no text needs them
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
# Code is what is code both for a reader that knows tables and for one that does not.
_PARSERS = (MarkdownIt("commonmark"), MarkdownIt("commonmark").enable("table"))


def export(knowledge: KnowledgeView, to: Path) -> int:
    """Write the notes to `to`; return the number of files. CoralError if something is there already, or it cannot be
    written."""
    if to.exists() and (not to.is_dir() or to.suffix == _PAGE or any(to.iterdir())):
        raise CoralError(f"cannot export to {to}: there is something already", "name a new folder or a new file")
    notes = [note for note in map(knowledge.parse, reversed(knowledge.notes)) if _is_current(knowledge, note)]
    try:
        if to.suffix == _PAGE:
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text(_page(_one_page(knowledge, notes)), encoding="utf-8", errors="replace")
            return 1
        (to / "notes").mkdir(parents=True, exist_ok=True)
        front = _page(_front_page(knowledge, notes))
        (to / "README.md").write_text(front, encoding="utf-8", errors="replace")
        for note in notes:
            (to / _file(note)).write_text(_as_file(knowledge, note), encoding="utf-8", errors="replace")
    except OSError as error:
        raise CoralError(f"cannot export to {to}: {error.strerror}", "name a folder that can be written") from error
    return 1 + len(notes)


def _page(parts: Iterable[str]) -> str:
    return harmless("\n\n".join(parts)) + "\n"


def harmless(text: str) -> str:
    """Return Markdown in which HTML and images are shown as text. Code stays as it is. To be called on a whole page: an
    open fence in one note makes code of the next."""
    text = re.sub(f"[{_BEGIN}{_END}]", "", format.clean(text))
    marked = _RISKY.sub(lambda match: f"{_BEGIN}{match.start()}{_END}", text)
    code = set.intersection(*(set(_in_code(text, parser.parse(marked))) for parser in _PARSERS))

    def shown(mark: re.Match[str]) -> str:
        place = int(mark[1])
        return text[place] if place in code else _ESCAPED[text[place]]

    return _MARK.sub(shown, marked)


def _in_code(text: str, tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the marked positions in `text` that are in code. Of code inside a paragraph, only those after a backtick on
    the same line: HTML at the beginning of a line would end the paragraph."""
    for token in tokens:
        if token.type == "code_inline" or (token.type == "fence" and _is_plain_fence(text, token)):
            for place in map(int, _MARK.findall(token.content)):
                if token.type == "fence" or "`" in text[text.rfind("\n", 0, place) + 1 : place]:
                    yield place
        yield from _in_code(text, token.children or ())


def _is_plain_fence(text: str, fence: Token) -> bool:
    """Return whether every reader of Markdown takes this for code: it begins and ends at the beginning of a line. Some
    take an open fence, one in a list and indented code for text."""
    begin, end = fence.map or (0, 0)
    lines = text.split("\n")[begin:end]
    return fence.level == 0 and len(lines) > 1 and all(line.startswith(fence.markup) for line in (lines[0], lines[-1]))


def _is_current(knowledge: KnowledgeView, note: Note) -> bool:
    """Return whether a note is neither superseded nor an earlier synthesis."""
    replaced = note.is_synthesis and knowledge.synthesis is not None and note.number != knowledge.synthesis.number
    return not replaced and note.name not in knowledge.superseded


def _beginning(knowledge: KnowledgeView) -> Iterator[str]:
    view = knowledge.view
    yield f"# What {format.line(view.task)} has taught"
    yield "  \n".join(line.plain for line in heading(view))
    if (note := knowledge.synthesis) is not None:
        since = knowledge.attempts_since(note)
        yield f"## {note.title}"
        yield body_of(note).strip()
        yield "" if since is None else f"As of #{knowledge.as_of(note)}: {current_text(since)}."
    if knowledge.conflicts:
        yield "## In conflict"
        yield "\n".join(f"- {c.claim.title}, but {c.other.title}" for c in knowledge.conflicts)


def _one_page(knowledge: KnowledgeView, notes: list[Note]) -> Iterator[str]:
    yield from _beginning(knowledge)
    for note in notes:
        if not note.is_synthesis:
            yield f"## {note.title}"
            yield f"*{_byline(knowledge, note)}*"
            yield body_of(note).strip()


def _front_page(knowledge: KnowledgeView, notes: list[Note]) -> Iterator[str]:
    yield from _beginning(knowledge)
    yield "## Notes"
    yield "\n".join(f"- [{_link_text(note)}]({_file(note)}): {_byline(knowledge, note)}" for note in notes)


def _as_file(knowledge: KnowledgeView, note: Note) -> str:
    front: dict[str, Value] = {"title": note.title, "author": note.author, "created": note.created, "kind": note.kind}
    front |= {"attempts": list(note.attempts), "about": list(note.about), "confidence": note.confidence}
    front |= {"state": knowledge.evidence(note).state.value}
    head = frontmatter.write({key: value for key, value in front.items() if value}, "").rstrip()
    head = _RISKY.sub(lambda match: _ESCAPED[match[0]], head)  # it is no Markdown, so that nothing in it is code
    return f"{head}\n\n{_page([note.body.strip()])}"


def _byline(knowledge: KnowledgeView, note: Note) -> str:
    evidence = knowledge.evidence(note)
    against = "; ".join(reasons_against(evidence))
    state = "" if evidence.state is NoteState.UNCHECKED else f"{evidence.state}{f' ({against})' if against else ''}"
    attempts = " ".join(f"#{number}" for number in note.attempts[:8])
    return ", ".join(part for part in (note.kind, note.author, attempts, state) if part) or "a note"


def _link_text(note: Note) -> str:
    return re.sub(r"[\[\]\\]", "", note.title)


def _file(note: Note) -> str:
    """Return the path of a note's page in the folder. It is made so that no name of a note can lead outside."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", note.name).strip("-").lower()[:60]
    return f"notes/{note.number:04d}-{words or 'note'}.md"
