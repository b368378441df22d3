"""The data about syntheses: each conclusion with the attempts that it cites, and what changed from one synthesis to
another."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

from coral.errors import CoralError
from coral.views import format
from coral.web.attempts_data import verdict
from coral.web.reading import KnowledgeView, RunView, changes, rendered, with_scores
from workspace.history import versions
from workspace.notes import Note, NumberedNote, RawNote

HEADING = "conclusions"
NOTES, VERSIONS = 20, 20  # the last syntheses, and the last versions of each
CONCLUSIONS = 40
CITED = 12  # attempts shown with one conclusion
LONGEST_LINE = 2000
_SECTION = re.compile(r"^#{1,6} +(.*)$", re.MULTILINE)
_ITEM = re.compile(r"^(?:[-*+]|\d{1,3}[.)]) +", re.MULTILINE)
_ATTEMPT = re.compile(r"(?<!\w)#(\d{1,9})\b")

Json = dict[str, object]


def divided(body: str) -> tuple[str, list[str], str]:
    """Return the text of a synthesis before its conclusions, the conclusions, and the text after them. If there are
    none, or more than CONCLUSIONS, all text is in the first part."""
    headings = list(_SECTION.finditer(body))
    for place, heading in enumerate(headings):
        if heading[1].rstrip(" ").casefold() == HEADING:
            end = headings[place + 1].start() if place + 1 < len(headings) else len(body)
            first, *items = _ITEM.split(body[heading.end() : end])
            if items and len(items) <= CONCLUSIONS:
                return body[: heading.start()] + first, items, body[end:]
    return body, [], ""


def conclusion(held: KnowledgeView, note: Note, text: str) -> Json:
    """Return one conclusion with the attempts that it cites, and whether the records support its figures."""
    cited = tuple(dict.fromkeys(map(int, _ATTEMPT.findall(text))))
    numbers = cited[:CITED]
    evidence = held.checked(replace(note, title="", body=text, attempts=numbers))
    found = [record for number in numbers if (record := held.find(number)) is not None]
    scores = format.scores([line.median for line in with_scores(held.view, found)])
    return {
        "html": rendered(text),
        "attempts": [
            {"number": record.number, "score": score, "verdict": verdict(record)}
            for record, score in zip(found, scores, strict=True)
        ],
        "left_out": len(cited) - len(numbers),
        "state": evidence.state,
        "agreeing": evidence.agreeing,
        "disputed": [format.line(problem, 300) for problem in evidence.disputed],
    }


def compared(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return a list of the last syntheses, oldest first, and what changed from the synthesis `old` to `new`; by default
    between the last two. Of a file that is overwritten by each synthesis, earlier versions are listed, too. CoralError
    if one is not in the list."""
    held = KnowledgeView(view)
    found = {_id(raw): held.parse((number, raw)) for number, raw in _syntheses(held)}
    ids = list(found)
    new = asked.get("new") or (ids[-1] if ids else "")
    old = asked.get("old") or (ids[-2] if len(ids) > 1 else new)
    if ids and not {old, new} <= set(ids):
        raise CoralError("cannot compare these syntheses: one of them is there no more", "choose two of the list")
    sections = changes(found[old], found[new]) if ids else []
    return {
        "syntheses": [{"id": id, **_about(note)} for id, note in found.items()],
        "old": old,
        "new": new,
        "sections": [
            {
                name: part if name == "heading" else [line[:LONGEST_LINE] for line in part]
                for name, part in asdict(section).items()
            }
            for section in sections
        ],
    }


def _about(note: Note) -> Json:
    when = note.created[:16].replace("T", " ")
    return {"title": format.line(note.title, 200), "author": format.line(note.author, 80), "created": when}


def _id(raw: RawNote) -> str:
    return sha256(raw.text.encode("utf-8", "replace")).hexdigest()[:16]


def _syntheses(held: KnowledgeView) -> Iterator[NumberedNote]:
    """Yield the last syntheses, oldest first, each after its earlier versions in the history of the notes."""
    layout = held.view.layout
    for number, raw in held.syntheses[-NOTES:]:
        path = Path(raw.path)
        if path.is_relative_to(layout.shared):
            earlier = list(versions(layout.history, path.relative_to(layout.shared).as_posix(), VERSIONS))
            for at, text in reversed(earlier):
                then = replace(raw, text=text, created=at)
                if then != replace(raw, created=at):
                    yield number, then
        yield number, raw
