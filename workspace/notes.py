"""The notes that agents write for each other: listed, numbered, searched.

An agent may put anything into the folder: something binary or huge, a link, a pipe, a note with a broken head. What can
be read is listed, the rest is left out; reading the folder never raises, blocks or follows a link. There may be
thousands of notes: only those that are wanted are parsed; of the others only what determines their number.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from workspace import frontmatter
from workspace.dead_ends import KINDS
from workspace.frontmatter import as_line, texts, words
from workspace.plain_file import read_below, walk

_MUCH = 131_072  # bytes read of one file
_IN_ALL = 268_435_456  # bytes read of all notes; further ones are left out
_MANY = 10_000
_DEEP = 3
_LOOKED_AT = 200  # of the latest notes, in search of a synthesis
_SYNTHESES = ("synthesis", "consolidation", "conclusions")
EARLIER = "earlier/"  # notes from earlier runs have names that begin with this
_NAMED = 100  # attempts in one line of a head
_RELATIONS = ("superseded_by", "supersedes", "contradicts")
# The line as `write_note` writes it; in any other form, the whole head is parsed.
_CREATED = re.compile(r'^created: "?(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"?$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Note:
    """`number` is its place in the list, oldest first, from 1; `attempts` are the evidence for it."""

    path: Path
    name: str
    title: str
    author: str
    created: str
    kind: str
    attempts: tuple[int, ...]
    body: str
    number: int = 0
    superseded_by: str = ""  # the name of the note that says it better, or corrects it
    claims: str | None = None  # what its author has taken up: see `claims`; None: it says nothing of that
    about: tuple[str, ...] = ()  # the files, parameters and techniques that it speaks of
    confidence: str = ""
    supersedes: tuple[str, ...] = ()  # names of notes whose place it takes
    contradicts: tuple[str, ...] = ()  # names of notes that say otherwise
    decided_by: tuple[int, ...] = ()  # the attempts that decide between it and those

    @property
    def is_synthesis(self) -> bool:
        """Whether it draws conclusions from others: its kind says so, or, where it has none, its name."""
        kind = self.kind.casefold()
        if self.is_earlier:
            return False
        return kind in _SYNTHESES or (not kind and self.name.casefold().rpartition("/")[2].startswith(_SYNTHESES))

    @property
    def is_dead_end(self) -> bool:
        return self.kind.casefold() in KINDS

    @property
    def is_earlier(self) -> bool:
        """Whether it came from another run: its attempts are not attempts of this one."""
        return self.name.startswith(EARLIER)

    def section(self, heading: str) -> str:
        """The text below a heading of the body, up to the next heading of any level; empty if there is no such."""
        parts = re.split(r"^#{1,6} (.*)$", self.body, flags=re.MULTILINE)
        texts = {name.strip().casefold(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}
        return texts.get(heading.casefold(), "").strip()


@dataclass(frozen=True, slots=True)
class RawNote:
    """A note whose head is not parsed, except for what determines its place in the list."""

    path: str
    name: str
    created: str
    text: str

    def may_mention(self, some: Sequence[str]) -> bool:
        """Return whether the note's name or front matter may contain one of the words, without regard to case. True
        also for a front matter with a backslash: such an escape can stand for any letter."""
        head = _head(self.text)
        about = f"{self.name}\n{head}".casefold()
        return "\\" in head or any(word in about for word in some)

    @property
    def is_synthesis(self) -> bool:
        return self.may_mention(_SYNTHESES) and self.parse(0).is_synthesis

    def contains(self, wanted: Sequence[str]) -> bool:
        """Return whether every one of these words occurs in the note. In a head, words may be written with escapes."""
        text = f"{self.name}\n{self.text}".casefold()
        if all(word in text for word in wanted):
            return True
        head = _head(self.text)
        if "\\" not in head and "''" not in head:
            return False
        note = self.parse(0)
        text = "\n".join((note.name, note.title, note.author, note.kind, note.body)).casefold()
        return all(word in text for word in wanted)

    def parse(self, number: int) -> Note:
        front, body = frontmatter.split(self.text)
        return Note(
            path=Path(self.path),
            name=self.name,
            title=as_line(words(front.get("title")) or _heading(body) or self.name, 200),
            author=author(front),
            created=self.created,
            kind=as_line(words(front.get("kind") or front.get("type")), 40),
            attempts=_numbers(front.get("attempts")),
            body=body,
            number=number,
            superseded_by=as_line(words(front.get("superseded_by")), 200),
            claims=as_line(words(front["claims"]), 200) if "claims" in front else None,
            about=texts(front.get("about")),
            confidence=as_line(words(front.get("confidence")), 40),
            supersedes=texts(front.get("supersedes")),
            contradicts=texts(front.get("contradicts")),
            decided_by=_numbers(front.get("decided_by")),
        )


NumberedNote = tuple[int, RawNote]


def find_notes(folders: Sequence[Path], query: str = "") -> list[Note]:
    """Return the notes of several folders of knowledge in which every word of the query occurs, in upper or lower case.

    Oldest first, with the numbers that they have in the list of all notes, from 1.
    """
    return [note.parse(number) for number, note in find_raw_notes(folders, query)]


def find_raw_notes(folders: Sequence[Path], query: str = "") -> list[NumberedNote]:
    """Return the same as `find_notes`, but not parsed: parsing all notes would take as long again as reading them."""
    wanted = query.casefold().split()
    notes = [note for shared in folders for note in _raw_notes(shared)]
    notes.sort(key=lambda note: (note.created, note.name))
    return [(number, note) for number, note in enumerate(notes, start=1) if note.contains(wanted)]


def related_notes(notes: Sequence[NumberedNote]) -> list[Note]:
    """Return the notes whose heads say that they supersede or contradict another note, or are superseded."""
    parsed = (note.parse(number) for number, note in notes if note.may_mention(_RELATIONS))
    return [note for note in parsed if note.superseded_by or note.supersedes or note.contradicts]


def superseded(notes: Sequence[NumberedNote], related: Sequence[Note]) -> dict[str, str]:
    """Return the superseded notes by name, each with the name of the note that supersedes it. Only a later note can
    supersede an earlier one. `related`: the result of `related_notes` for all notes."""
    by_name = {note.name: note.superseded_by for note in related if note.superseded_by}
    wanted = {name for note in related for name in note.supersedes}
    numbers = {note.name: number for number, note in notes if note.name in wanted}
    for note in related:
        for name in note.supersedes:
            if numbers.get(name, note.number) < note.number:
                by_name.setdefault(name, note.name)
    return by_name


def recent_notes(shared: Path, limit: int) -> list[Note]:
    """Return the notes written last, newest first, without reading the others; not numbered."""
    shared = shared.resolve()  # agents have a link to it
    entries = sorted(markdown(shared / "notes"), key=_changed, reverse=True)
    found = list(islice(filter(None, (_raw_note(shared, entry.path) for entry in entries)), limit))
    found.sort(key=lambda note: (note.created, note.name), reverse=True)
    return [note.parse(0) for note in found]


def earlier_notes(shared: Path, limit: int) -> list[Note]:
    """Return the notes from earlier runs, in the order of their names; not numbered."""
    shared = shared.resolve()
    entries = islice(markdown(shared / "notes" / EARLIER), limit)
    return [note.parse(0) for entry in entries if (note := _raw_note(shared, entry.path)) is not None]


def latest_synthesis(shared: Path) -> Note | None:
    """Return the synthesis written last among the latest notes; None if there is none."""
    shared = shared.resolve()
    entries = sorted(markdown(shared / "notes"), key=_changed, reverse=True)[:_LOOKED_AT]
    notes = filter(None, (_raw_note(shared, entry.path) for entry in entries))
    return next((note.parse(0) for note in notes if note.is_synthesis), None)


def _raw_notes(shared: Path) -> Iterator[RawNote]:
    left, shared = _IN_ALL, shared.resolve()
    for entry in markdown(shared / "notes"):
        if left > 0 and (note := _raw_note(shared, entry.path)):
            left -= len(note.text)
            yield note


def _raw_note(shared: Path, path: str) -> RawNote | None:
    text = read(shared, path)
    if text is None:
        return None
    name = as_line(path[len(f"{shared}/notes/") : -len(".md")], 200)
    return RawNote(path, name, _created(text) or _written(path), text)


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
    """Return the regular *.md files below a folder."""
    files = iter(()) if folder.is_symlink() else walk(folder, _DEEP, _MANY)
    return islice((entry for entry in files if entry.name[-3:].lower() == ".md"), _MANY)


def _changed(entry: os.DirEntry[str]) -> int:
    """Return when a file was modified last, in nanoseconds; 0 if it is gone."""
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def read(shared: Path, path: str) -> str | None:
    """Return the text of a file in the shared knowledge, cut off after 128 KiB; None if it is no text or no regular
    file."""
    content = read_below(shared, path[len(f"{shared}/") :], _MUCH)
    if content is None or b"\0" in content:
        return None
    return content.decode("utf-8", "replace").replace("\r\n", "\n")


def author(front: Mapping[str, str | list[str]]) -> str:
    return as_line(words(front.get("author") or front.get("agent")), 80)


def _heading(body: str) -> str:
    found = re.search(r"^#{1,3} +(\S.*)$", body, re.MULTILINE)
    return found[1] if found else ""


def _numbers(value: str | list[str] | None) -> tuple[int, ...]:
    """Return the last numbers in a list, at most _NAMED: those of the latest attempts."""
    return tuple(int(number) for number in re.findall(r"\d{1,9}", words(value))[-_NAMED:])


def _moment(text: str) -> str:
    """Return a time as ISO-8601 in UTC, so that texts sort by time; "" if the text is no time."""
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
