"""What agents write for each other: notes (Markdown with a head) and skills (a folder with `SKILL.md`).

Rule: whatever an agent puts into the folder - binary, huge, a link to elsewhere, a pipe, a broken head - is listed as
well as it can be or passed over; reading it never raises, never blocks, and never follows a link.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path

from workspace import frontmatter
from workspace.errors import WorkspaceError
from workspace.frontmatter import Value, words
from workspace.history import Change, history, snapshot

__all__ = [
    "Change",
    "Note",
    "Skill",
    "create",
    "history",
    "list_notes",
    "list_skills",
    "recent_notes",
    "search_notes",
    "snapshot",
    "write_note",
    "write_skill",
]

_MUCH = 131_072  # bytes read of one file
_MANY = 2_000
_DEEP = 3
_LOOKS = 10_000  # names
_NAME = re.compile(r"\w[\w. -]{0,99}(/\w[\w. -]{0,99}){0,2}")


@dataclass(frozen=True, slots=True)
class Note:
    """`number` is its place in the list, oldest first, from 1; `attempts` are those it rests on."""

    path: Path
    name: str
    title: str
    author: str
    created: str
    kind: str
    attempts: tuple[int, ...]
    body: str
    number: int = 0


@dataclass(frozen=True, slots=True)
class Skill:
    """`path` is its SKILL.md; whatever else it needs lies beside it."""

    name: str
    description: str
    path: Path
    body: str
    author: str


def create(shared: Path) -> None:
    """Make the folders that agents write to."""
    for name in ("notes", "skills", "roles"):
        (shared / name).mkdir(parents=True, exist_ok=True)


def list_notes(shared: Path) -> list[Note]:
    """All notes, oldest first, numbered from 1."""
    notes = [note for path, _ in _markdown(shared / "notes") if (note := _note(shared, path))]
    notes.sort(key=lambda note: (note.created, note.name))
    return [_numbered(note, number) for number, note in enumerate(notes, start=1)]


def recent_notes(shared: Path, limit: int) -> list[Note]:
    """The notes written last, newest first, without reading the others; not numbered."""
    files = sorted(_markdown(shared / "notes"), key=lambda file: file[1], reverse=True)
    found: list[Note] = []
    for path, _ in files:
        if len(found) >= limit:
            break
        if note := _note(shared, path):
            found.append(note)
    return sorted(found, key=lambda note: (note.created, note.name), reverse=True)


def search_notes(shared: Path, query: str) -> list[Note]:
    """Notes in which every word of the query occurs, in whatever case; numbered as in the whole list."""
    wanted = query.casefold().split()
    return [note for note in list_notes(shared) if all(word in _searchable(note) for word in wanted)]


def list_skills(shared: Path) -> list[Skill]:
    """All skills, by name."""
    skills = []
    for path, _ in _markdown(shared / "skills"):
        if path.name.lower() == "skill.md" and (text := _read(path)) is not None:
            front, body = frontmatter.split(text)
            name = _line(words(front.get("name")), 80) or _line(path.parent.name, 80)
            description = _line(words(front.get("description")) or _first_line(body), 500)
            skills.append(Skill(name, description, path, body, _author(front)))
    return sorted(skills, key=lambda skill: (skill.name, str(skill.path)))


def write_note(shared: Path, name: str, front: Mapping[str, Value], body: str) -> Path:
    """Write `notes/<name>.md` whole or not at all, over one of the same name; `created` is now unless it is given."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return _write(shared, f"notes/{_allowed(name)}.md", {"created": now, **front}, body)


def write_skill(shared: Path, name: str, front: Mapping[str, Value], body: str) -> Path:
    """Write `skills/<name>/SKILL.md` likewise; `front` has the description."""
    return _write(shared, f"skills/{_allowed(name)}/SKILL.md", {"name": name, **front}, body)


def _write(shared: Path, name: str, front: Mapping[str, Value], body: str) -> Path:
    path = shared / name
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{secrets.token_hex(8)}.tmp")
    temporary.write_text(frontmatter.write(front, body), encoding="utf-8", errors="replace")
    temporary.replace(path)
    return path


def _allowed(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise WorkspaceError(f"cannot name a note {name!r}", "letters, digits, dots, dashes; at most two folders deep")
    return name


def _markdown(folder: Path) -> Iterator[tuple[Path, int]]:
    """Regular *.md files below a folder, with the time each was written (ns)."""
    return iter(()) if folder.is_symlink() else islice(_walk(folder, 0, count()), _MANY)


def _walk(folder: Path, depth: int, looks: Iterator[int]) -> Iterator[tuple[Path, int]]:
    """The same without a limit on files, but on what is looked at for them: folders in folders may be millions.

    No link is followed, no dot name looked at.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice(entries, _MANY), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if entry.name.startswith("."):
            continue
        if next(looks) >= _LOOKS:
            return
        try:
            about = entry.stat(follow_symlinks=False)
        except OSError:
            continue  # gone since
        if stat.S_ISDIR(about.st_mode) and depth < _DEEP:
            yield from _walk(Path(entry.path), depth + 1, looks)
        elif stat.S_ISREG(about.st_mode) and entry.name.lower().endswith(".md"):
            yield Path(entry.path), about.st_mtime_ns


def _read(path: Path) -> str | None:
    """The text of a file, cut off where it gets long; None if it is no text, or no file of its own."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            content = opened.read(_MUCH) if stat.S_ISREG(os.fstat(file).st_mode) else b"\0"
    except OSError:
        return None
    return None if b"\0" in content else content.decode("utf-8", "replace").replace("\r\n", "\n")


def _note(shared: Path, path: Path) -> Note | None:
    text = _read(path)
    if text is None:
        return None
    front, body = frontmatter.split(text)
    name = _line(str(path.relative_to(shared / "notes").with_suffix("")), 200)
    return Note(
        path=path,
        name=name,
        title=_line(words(front.get("title")) or _heading(body) or name, 200),
        author=_author(front),
        created=_moment(words(front.get("created"))) or _written(path),
        kind=_line(words(front.get("kind") or front.get("type")), 40),
        attempts=tuple(int(number) for number in re.findall(r"\d{1,9}", words(front.get("attempts")))[:100]),
        body=body,
    )


def _numbered(note: Note, number: int) -> Note:
    return Note(
        note.path, note.name, note.title, note.author, note.created, note.kind, note.attempts, note.body, number
    )


def _searchable(note: Note) -> str:
    return "\n".join((note.name, note.title, note.author, note.kind, note.body)).casefold()


def _author(front: Mapping[str, str | list[str]]) -> str:
    return _line(words(front.get("author") or front.get("agent")), 80)


def _heading(body: str) -> str:
    found = re.search(r"^#{1,3} +(\S.*)$", body, re.MULTILINE)
    return found[1] if found else ""


def _first_line(body: str) -> str:
    return next((line for line in body.split("\n") if line.strip() and not line.startswith("#")), "")


def _line(text: str, length: int) -> str:
    """One printable line: names and titles go into prompts and onto terminals."""
    shown = "".join(character if character.isprintable() else " " for character in text[: length * 4])
    return " ".join(shown.encode("utf-8", "replace").decode().split())[:length]


def _moment(text: str) -> str:
    """A time as ISO-8601 in UTC, so that texts sort; "" if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return _utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return ""


def _written(path: Path) -> str:
    try:
        return _utc(datetime.fromtimestamp(path.lstat().st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return ""


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
