"""The shared knowledge: its folder, and its skills (each a folder with `SKILL.md`). The module `notes` reads notes.

An agent may put anything into the folder: what can be read is listed, the rest is left out, as in `notes`.
"""

import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from workspace import frontmatter
from workspace.errors import WorkspaceError
from workspace.frontmatter import Value, as_line, words
from workspace.notes import EARLIER, author, markdown, read

FOLDERS = ("notes", "skills", "roles")
_IN_ALL = 33_554_432  # characters of all skills that are listed: each prompt lists them
_LOOKED_AT = 10_000  # characters of a body, in search of its first line
_FIRST_LINE = re.compile(r"^(?!#)[^\S\n]*\S.*$", re.MULTILINE)  # that says something and is no heading
_NAME = re.compile(r"\w[\w. -]{0,99}(/\w[\w. -]{0,99}){0,2}")


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill. `path`: its SKILL.md; its other files are beside that."""

    name: str
    description: str
    path: Path
    body: str
    author: str
    is_earlier: bool = False  # whether it came from another run


def create(shared: Path) -> None:
    """Make the folders that agents write to. Anything else in their place is renamed to a hidden name, and so is a link
    that leads out of the shared knowledge, or to a closed folder; a folder that an agent has closed is opened again.
    With such a link, or a closed folder, no agent could start."""
    for folder in _folders(shared):
        if os.path.lexists(folder) and (not folder.is_dir() or _is_wrong_link(folder, shared)):
            folder.rename(folder.with_name(f".{folder.name}.{secrets.token_hex(8)}"))
        folder.mkdir(parents=True, exist_ok=True)
        if not _is_open(folder) and not folder.is_symlink():
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | stat.S_IRWXU)


def is_there(shared: Path) -> bool:
    """Return whether the folders that agents write to are all there and open."""
    return all(_is_open(folder) and not _is_wrong_link(folder, shared) for folder in _folders(shared))


def _folders(shared: Path) -> list[Path]:
    return [shared, *(shared / name for name in FOLDERS)]


def _is_wrong_link(folder: Path, shared: Path) -> bool:
    """Return whether a folder that exists is a link, and leads out of `shared`, where nothing is read or written, or to
    a closed folder."""
    if folder == shared or not folder.is_symlink():
        return False
    return not _is_open(folder) or not folder.resolve().is_relative_to(shared.resolve())


def _is_open(folder: Path) -> bool:
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return stat.S_ISDIR(mode) and mode & stat.S_IRWXU == stat.S_IRWXU


def list_skills(shared: Path) -> list[Skill]:
    """Return the skills by their names. Once they have _IN_ALL characters together, further ones are left out."""
    skills, left, shared = [], _IN_ALL, shared.resolve()  # agents have a link to it
    for entry in markdown(shared / "skills"):
        path = Path(entry.path)
        if left > 0 and path.name.lower() == "skill.md" and (text := read(shared, entry.path)) is not None:
            left -= len(text)
            front, body = frontmatter.split(text)
            name = as_line(words(front.get("name")), 80) or as_line(path.parent.name, 80)
            description = as_line(words(front.get("description")) or _first_line(body), 500)
            is_earlier = path.is_relative_to(shared / "skills" / EARLIER.rstrip("/"))
            skills.append(Skill(name, description, path, body, author(front), is_earlier))
    return sorted(skills, key=lambda skill: (skill.name, str(skill.path)))


def write_note(shared: Path, name: str, front: Mapping[str, Value], body: str) -> Path:
    """Write `notes/<name>.md` whole or not at all, replacing a note of that name; `created` is now unless `front` has
    it."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return _write(shared, f"notes/{_allowed(name)}.md", {"created": now, **front}, body)


def write_skill(shared: Path, name: str, front: Mapping[str, Value], body: str) -> Path:
    """Write `skills/<name>/SKILL.md` whole or not at all; `front` has the description."""
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


def _first_line(body: str) -> str:
    found = _FIRST_LINE.search(body, 0, _LOOKED_AT)
    return found[0] if found else ""
