"""The data of the pages about knowledge: the latest synthesis, the notes, each with what the records say of it, and the
skills."""

from collections.abc import Mapping

from coral.errors import CoralError
from coral.views import format
from coral.web import synthesis_data
from coral.web.attempts_data import number_in
from coral.web.reading import KnowledgeView, RunView, body_of, rendered
from workspace.knowledge import Skill, list_skills
from workspace.notes import Note, NumberedNote

LONGEST = 60_000  # characters of one note that are rendered
NOTES = 100  # of one page
CITED = 200  # attempts of a note

Json = dict[str, object]


def knowledge(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return the front page: the latest synthesis, one page of the notes, the conflicts, the dead ends and the skills.
    The parameter `text` filters notes and skills."""
    held = KnowledgeView(view)
    text, offset = asked.get("text", "")[:200], number_in(asked, "offset", 0)
    found = [note for note in held.notes if not text or note[1].contains(text.casefold().split())]
    shown = found[::-1][offset : offset + NOTES]
    return {
        "synthesis": None if held.synthesis is None else note_data(held, held.synthesis),
        "notes": [_line(held, note) for note in shown],
        "total": len(found),
        "offset": offset,
        "most": NOTES,
        "conflicts": [
            {"claim": _named(conflict.claim), "other": _named(conflict.other), "why": format.line(conflict.why)}
            for conflict in held.conflicts
        ],
        "dead_ends": [_named(note) for note in held.dead_ends],
        "skills": [_skill(skill) for skill in _skills(view) if not text or text.casefold() in _text_of(skill)],
    }


def note(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return one note with its text as HTML. CoralError if there is none of that number."""
    held, number = KnowledgeView(view), number_in(asked, "number", 0)
    return note_data(held, held.parse(_numbered(held, number)))


def _numbered(held: KnowledgeView, number: int) -> NumberedNote:
    found = next((note for note in held.notes if note[0] == number), None)
    if found is None:
        raise CoralError(f"cannot show note {number}: there is no such note", f"there are {len(held.notes)}")
    return found


def note_data(held: KnowledgeView, found: Note) -> Json:
    """Return a note with its text as HTML and what the records say of its figures."""
    evidence = held.evidence(found)
    before, conclusions, after = synthesis_data.divided(body_of(found)[:LONGEST])
    return {
        **_named(found),
        "created": found.created[:16].replace("T", " "),
        "kind": format.line(found.kind, 40),
        "confidence": format.line(found.confidence, 40),
        "attempts": list(found.attempts[:CITED]),
        "html": rendered(before),
        "conclusions": [synthesis_data.conclusion(held, found, text) for text in conclusions],
        "rest": rendered(after),
        "cut": len(found.body) > LONGEST,
        "state": evidence.state,
        "agreeing": evidence.agreeing,
        "disputed": [format.line(problem, 300) for problem in evidence.disputed],
        "stale": format.line(evidence.stale, 300),
        "superseded_by": format.line(held.superseded.get(found.name, ""), 200),
    }


def _named(found: Note) -> Json:
    return {"number": found.number, "title": format.line(found.title, 200), "author": format.line(found.author, 80)}


def _line(held: KnowledgeView, numbered: NumberedNote) -> Json:
    found = held.parse(numbered)
    return {
        **_named(found),
        "created": found.created[:16].replace("T", " "),
        "kind": format.line(found.kind, 40),
        "superseded": found.name in held.superseded,
        "state": held.evidence(found).state,
    }


def skill(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return one skill with its text as HTML. CoralError if there is none of that name."""
    name = asked.get("name", "")
    found = next((skill for skill in _skills(view) if skill.name == name), None)
    if found is None:
        raise CoralError(f"cannot show the skill {name[:80]!r}: there is no such skill", "coral skills lists them")
    return {**_skill(found), "html": rendered(found.body[:LONGEST]), "cut": len(found.body) > LONGEST}


def _skills(view: RunView) -> list[Skill]:
    return list(list_skills(view.layout.shared))


def _text_of(found: Skill) -> str:
    return f"{found.name}\n{found.description}\n{found.body}".casefold()


def _skill(found: Skill) -> Json:
    about = {"description": format.line(found.description), "author": format.line(found.author, 80)}
    return {"name": found.name, **about}
