"""Hands knowledge from one run to later ones: its conclusions and skills are published into a folder, or brought into a
new run.

Attempts of another run are no evidence. In a new run the notes are in `notes/earlier/`, their attempts are written as
`there#17`, and they are not compared with the new run's records. Only a note of the new run that supersedes such a note
can make its claim evidence.
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attempts.files import expanded, read_bytes
from coral.cli.run_data.skill_tests import contents
from coral.errors import CoralError
from coral.reading import run_folder
from coral.reading.knowledge_view import KnowledgeView, folders
from coral.reading.run_view import RunView
from coral.views.evidence import NoteState
from workspace import frontmatter
from workspace.frontmatter import Value
from workspace.knowledge import Skill, list_skills
from workspace.layout import Layout
from workspace.notes import EARLIER, Note, find_raw_notes
from workspace.plain_file import write_below

MOST = 200  # notes, and skills, of one run
HEAD = 65_536  # bytes of a skill in which its head is looked for
SOURCES = 100  # runs whose knowledge one folder holds
_ATTEMPT = re.compile(r"(?<![\w&/])#(?=\d)")
_OF_THIS_RUN = ("form", "start")  # keys of a skill's head that name attempts, so that no other run can use it


@dataclass(frozen=True, slots=True)
class EarlierKnowledge:
    """What one run hands on. `label`: the name of the folder for its notes and skills, which tells runs apart."""

    label: str
    notes: tuple[Note, ...]
    skills: tuple[Skill, ...]


def of_run(layout: Layout) -> EarlierKnowledge:
    """Return what a run hands on: its last synthesis, its dead ends, the notes that its records support, and its own
    skills."""
    knowledge = KnowledgeView(RunView(layout))
    latest = [knowledge.synthesis] if knowledge.synthesis is not None else []
    others = (knowledge.parse(note) for note in reversed(knowledge.notes))
    kept = (note for note in others if not note.is_synthesis and not note.is_earlier and _holds(knowledge, note))
    skills = (skill for folder in folders(layout) for skill in list_skills(folder) if _is_for_others(skill))
    label = f"{knowledge.view.slug}-{layout.root.name}"
    return EarlierKnowledge(label, tuple(islice((*latest, *kept), MOST)), tuple(islice(skills, MOST)))


def read(source: str) -> list[EarlierKnowledge]:
    """Return what a run, or a folder of published knowledge, holds. CoralError if there is nothing."""
    path = expanded(source)
    if path.is_dir() and not (path / "private").is_dir():
        found = list(islice(_in_folder(path), SOURCES))
        if not found:
            hint = "name a run, or a folder that `coral knowledge publish` made"
            raise CoralError(f"cannot take knowledge from {source}: there are no notes and no skills in it", hint)
        return found
    return [of_run(run_folder.named(source, None))]


def publish(earlier: EarlierKnowledge, to: Path) -> None:
    """Write what a run hands on into the folder `to`, in place of what was published there before."""
    try:
        to.mkdir(parents=True, exist_ok=True)
        for name in ("notes", "skills"):
            if (to / name).exists():
                shutil.rmtree(to / name)
        _write(earlier, to, "notes", "skills", is_here=False)
    except OSError as error:
        raise CoralError(f"cannot publish to {to}: {error.strerror}", "name a folder that can be written") from error


def bring_in(earlier: EarlierKnowledge, shared: Path) -> None:
    """Write what an earlier run handed on into the knowledge of a new run, marked with the label of that earlier
    run."""
    try:
        _write(earlier, shared, f"notes/{EARLIER}{earlier.label}", f"skills/{EARLIER}{earlier.label}", is_here=True)
    except OSError as error:
        raise CoralError(f"cannot bring in what {earlier.label} knows: {error.strerror}", "see --knowledge") from error


def _holds(knowledge: KnowledgeView, note: Note) -> bool:
    state = knowledge.evidence(note).state
    good = state is NoteState.SUPPORTED or (note.is_dead_end and state is NoteState.UNCHECKED)
    return good and note.name not in knowledge.superseded


def _is_for_others(skill: Skill) -> bool:
    """Return whether another run can use a skill, and the skill did not itself come from an earlier run."""
    try:
        front, _ = frontmatter.split(read_bytes(skill.path, HEAD).decode(errors="replace"))
    except (OSError, ValueError):
        return False
    return not skill.is_earlier and not any(key in front for key in _OF_THIS_RUN)


def _in_folder(folder: Path) -> Iterator[EarlierKnowledge]:
    """Yield the knowledge in a folder and the two levels below it, which may be of one run or of many."""
    for depth in ("", "*", "*/*"):
        for place in sorted(folder.glob(depth)) if depth else [folder]:
            if place.is_symlink() or not any((place / name).is_dir() for name in ("notes", "skills")):
                continue
            notes = tuple(note.parse(number) for number, note in islice(find_raw_notes([place]), MOST))
            skills = tuple(islice(list_skills(place), MOST))
            if notes or skills:
                parts = place.relative_to(folder).parts or (place.resolve().name,)
                yield EarlierKnowledge("-".join(parts), notes, skills)


def _write(earlier: EarlierKnowledge, to: Path, notes: str, skills: str, *, is_here: bool) -> None:
    for count, note in enumerate(earlier.notes, 1):
        content = _note(earlier.label, note, is_here=is_here).encode("utf-8", "replace")
        write_below(to, f"{notes}/{count:03d}-{_slug(note.name)}.md", content)
    for skill in earlier.skills:
        for name, content in contents(skill.path.parent):
            is_head = name.lower() == "skill.md"
            text = _skill(earlier.label, skill, is_here=is_here).encode("utf-8", "replace") if is_head else content
            write_below(to, f"{skills}/{_slug(skill.name)}/{name}", text)


def _note(label: str, note: Note, *, is_here: bool) -> str:
    """Return the text of a note to be written. `is_here`: into a new run, so that its attempts are marked as those of
    another run."""
    about = [word for word in note.about if not (is_here and word.startswith("#"))]
    kind = note.kind
    if note.is_dead_end and about != list(note.about):
        kind = "note"  # it is a dead end only together with an attempt of that run
    front: dict[str, Value] = {
        "title": _elsewhere(note.title) if is_here else note.title,
        "author": note.author,
        "created": note.created,
        "kind": kind,
        "attempts_there" if is_here else "attempts": list(note.attempts),
        "about": about,
        "confidence": note.confidence,
        "from": label,
    }
    return frontmatter.write(
        {key: value for key, value in front.items() if value}, _elsewhere(note.body) if is_here else note.body
    )


def _skill(label: str, skill: Skill, *, is_here: bool) -> str:
    front: dict[str, Value] = {"name": skill.name, "description": skill.description, "author": skill.author}
    front["from"] = label
    if is_here:
        front["description"] = _elsewhere(skill.description)
    return frontmatter.write(front, _elsewhere(skill.body) if is_here else skill.body)


def _elsewhere(text: str) -> str:
    """Return a text in which every `#17` is written as `there#17`."""
    return _ATTEMPT.sub("there#", text)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-").lower()[:60] or "unnamed"
