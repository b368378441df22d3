"""The notes that agents write for each other: listed, numbered, searched.

Rule: whatever an agent puts into the folder - binary, huge, a link to elsewhere, a pipe, a broken head - is listed as
well as it can be or passed over; reading it never raises, never blocks, and never follows a link.
Of thousands only those that are asked for are read with care: of the others, what gives them their number.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, islice
from operator import attrgetter
from pathlib import Path

from workspace import frontmatter
from workspace.frontmatter import words
from workspace.plain_file import read_plain

_MUCH = 131_072  # bytes read of one file
_IN_ALL = 268_435_456  # bytes read of all notes; what lies beyond them is passed over
_MANY = 10_000
_DEEP = 3
_LOOKS = 20_000  # names
# The head that `write` gives a note: of any other, the lines are read one by one.
_CREATED = re.compile(r'^created: "?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"?$', re.MULTILINE)


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
class Sheet:
    """A note of which only the place in the list is known."""

    path: str
    name: str
    created: str
    text: str

    def may_say(self, some: Sequence[str]) -> bool:
        """False where neither its name nor its head can hold one of these words, in whatever case."""
        head = _head(self.text)
        about = f"{self.name}\n{head}".casefold()
        return "\\" in head or any(word in about for word in some)

    def holds(self, wanted: Sequence[str]) -> bool:
        """Whether every word occurs in it. A head may say by an escape what does not stand there."""
        text = f"{self.name}\n{self.text}".casefold()
        if all(word in text for word in wanted):
            return True
        head = _head(self.text)
        return ("\\" in head or "''" in head) and all(word in _searchable(self.note(0)) for word in wanted)

    def note(self, number: int) -> Note:
        front, body = frontmatter.split(self.text)
        return Note(
            path=Path(self.path),
            name=self.name,
            title=as_line(words(front.get("title")) or _heading(body) or self.name, 200),
            author=author(front),
            created=self.created,
            kind=as_line(words(front.get("kind") or front.get("type")), 40),
            attempts=tuple(int(number) for number in re.findall(r"\d{1,9}", words(front.get("attempts")))[:100]),
            body=body,
            number=number,
        )


Numbered = tuple[int, Sheet]


def find_notes(folders: Sequence[Path], query: str = "") -> list[Note]:
    """The notes of several folders of knowledge in which every word of the query occurs, in whatever case.

    Oldest first, and numbered from 1 as in the list of all.
    """
    return [sheet.note(number) for number, sheet in find_sheets(folders, query)]


def find_sheets(folders: Sequence[Path], query: str = "") -> list[Numbered]:
    """The same with their numbers, for who needs few of them in full: to read the heads of all takes as long again."""
    wanted = query.casefold().split()
    sheets = [sheet for shared in folders for sheet in _sheets(shared)]
    sheets.sort(key=lambda sheet: (sheet.created, sheet.name))
    return [(number, sheet) for number, sheet in enumerate(sheets, start=1) if sheet.holds(wanted)]


def list_notes(shared: Path) -> list[Note]:
    """All notes, oldest first, numbered from 1."""
    return find_notes([shared])


def search_notes(shared: Path, query: str) -> list[Note]:
    """Notes in which every word of the query occurs, in whatever case; numbered as in the whole list."""
    return find_notes([shared], query)


def recent_notes(shared: Path, limit: int) -> list[Note]:
    """The notes written last, newest first, without reading the others; not numbered."""
    found: list[Sheet] = []
    for entry in sorted(markdown(shared / "notes"), key=_changed, reverse=True):
        if len(found) >= limit:
            break
        if sheet := _sheet(shared, entry.path):
            found.append(sheet)
    found.sort(key=lambda sheet: (sheet.created, sheet.name), reverse=True)
    return [sheet.note(0) for sheet in found]


def _sheets(shared: Path) -> Iterator[Sheet]:
    left = _IN_ALL
    for entry in markdown(shared / "notes"):
        if left > 0 and (sheet := _sheet(shared, entry.path)):
            left -= len(sheet.text)
            yield sheet


def _sheet(shared: Path, path: str) -> Sheet | None:
    text = read(path)
    if text is None:
        return None
    name = as_line(path[len(f"{shared}/notes/") : -len(".md")], 200)
    return Sheet(path, name, _created(text) or _written(path), text)


def _head(text: str) -> str:
    return text[: max(text.find("\n---", 3), text.find("\n...", 3))] if text.startswith("---") else ""


def _created(text: str) -> str:
    head = _head(text)
    plain = _CREATED.findall(head)
    if len(plain) == 1 and head.lower().count("created") == 1:
        with contextlib.suppress(ValueError):
            datetime.fromisoformat(plain[0])
            return str(plain[0])
    return _moment(words(frontmatter.split(text)[0].get("created")))


def markdown(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Regular *.md files below a folder."""
    return iter(()) if folder.is_symlink() else islice(_walk(folder, 0, count()), _MANY)


def _walk(folder: str | Path, depth: int, looks: Iterator[int]) -> Iterator[os.DirEntry[str]]:
    """The same without a limit on files, but on what is looked at for them: folders in folders may be millions.

    No link is followed, no dot name looked at.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(islice(entries, _MANY), key=attrgetter("name"))
    except OSError:
        return
    for entry in found:
        if entry.name.startswith("."):
            continue
        if next(looks) >= _LOOKS:
            return
        if entry.name[-3:].lower() == ".md" and entry.is_file(follow_symlinks=False):
            yield entry
        elif depth < _DEEP and entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, depth + 1, looks)


def _changed(entry: os.DirEntry[str]) -> int:
    """When a file was written, in nanoseconds; 0 if it is gone since."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def read(path: str) -> str | None:
    """The text of a file, cut off where it gets long; None if it is no text, or no file of its own."""
    content = read_plain(path, _MUCH)
    if content is None or b"\0" in content:
        return None
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def _searchable(note: Note) -> str:
    return "\n".join((note.name, note.title, note.author, note.kind, note.body)).casefold()


def author(front: Mapping[str, str | list[str]]) -> str:
    return as_line(words(front.get("author") or front.get("agent")), 80)


def _heading(body: str) -> str:
    found = re.search(r"^#{1,3} +(\S.*)$", body, re.MULTILINE)
    return found[1] if found else ""


def as_line(text: str, length: int) -> str:
    """One printable line: names and titles go into prompts and onto terminals."""
    if text.isascii() and text.isprintable():
        return " ".join(text[: length * 4].split())[:length]
    shown = "".join(character if character.isprintable() else " " for character in text[: length * 4])
    return " ".join(shown.encode("utf-8", "replace").decode().split())[:length]


def _moment(text: str) -> str:
    """A time as ISO-8601 in UTC, so that texts sort; "" if it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return _utc(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return ""


def _written(path: str) -> str:
    try:
        return _utc(datetime.fromtimestamp(os.lstat(path).st_mtime, UTC))
    except (OSError, ValueError, OverflowError):
        return ""


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
