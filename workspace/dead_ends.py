"""What is known not to work, from the notes of the kind `dead-end`, so that no agent tries it again without knowing.

`coral eval` calls this at each submission, so it imports little, and a note is read again only if its file has changed:
the results are kept in a file of the agent's own. An attempt meets a dead end if it touches everything that the note is
`about`: each item is named in the attempt's message or in a changed line, or is a changed file.
"""

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from workspace import frontmatter
from workspace.frontmatter import as_line, texts, words
from workspace.plain_file import read_below, read_plain, walk, write_below

KINDS = ("dead-end", "dead end")
_MUCH = 16_384  # bytes read of a note: enough for its head
_KEPT = 16_000_000  # largest size in bytes of the file that keeps results
_SLACK = 2_000_000_000  # nanoseconds by which a file may look older than it is
_MANY = 10_000
_DEEP = 3

Kept = dict[str, dict[str, list[str]]]


def find_dead_ends(shared: Path, kept_in: Path) -> list[tuple[str, str, list[str]]]:
    """Return the dead ends in a folder of knowledge that no note supersedes: the name and title of the note, and what
    it is about. `kept_in`: the file that keeps results for the next call; it may be missing or damaged."""
    shared = shared.resolve()  # agents have a link to it
    until, kept = _read(kept_in)
    now, found, changed = time.time_ns(), {}, False
    for entry in walk(shared / "notes", _DEEP, _MANY):
        name = entry.path[len(f"{shared}/notes/") : -len(".md")]
        if entry.name[-3:].lower() != ".md":
            continue
        try:
            is_new = entry.stat(follow_symlinks=False).st_ctime_ns >= until
        except OSError:
            continue
        if is_new:
            changed = True
            if (read := _read_note(shared, name)) is not None:
                found[name] = read
        elif name in kept:
            found[name] = kept[name]
    if changed or len(found) != len(kept):
        _write(kept_in, now - _SLACK, found)
    gone = {name for note in found.values() for name in note.get("supersedes", ())}
    dead_ends = [(name, note) for name, note in sorted(found.items()) if note.get("about") and name not in gone]
    return [(name, "".join(note.get("title", ())), note["about"]) for name, note in dead_ends]


def met_by(about: Iterable[str], message: str, changes: Callable[[], tuple[list[str], str]]) -> bool:
    """Return whether an attempt concerns every subject of a dead end: each word of `about` is named in its `message`,
    or in the files and lines that it changes. `changes` returns the paths of these files, and the lines; it is called
    only if the message does not name every word."""
    left = [word for word in about if not mentions(message, word)]
    if not left:
        return True
    files, lines = changes()
    touched = {part.casefold() for path in files for part in (path, path.rpartition("/")[2])}
    return all(word.casefold() in touched or mentions(lines, word) for word in left)


def mentions(text: str, word: str) -> bool:
    """Return whether a text contains a word, a name or a path as a whole, in upper or lower case."""
    return re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", text.casefold()) is not None


def _read_note(shared: Path, name: str) -> dict[str, list[str]] | None:
    """Return what a note says about dead ends, by key: what it is `about`, its `title`, and what it `supersedes`; None
    if it says nothing."""
    content = read_below(shared, f"notes/{name}.md", _MUCH)
    text = (content or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    end = text.find("\n---", 3)
    head = text[: end + 4] if text.startswith("---") else ""
    if "supersedes" not in head and "kind" not in head.casefold() and "type" not in head.casefold():
        return None
    front, _ = frontmatter.split(head)
    says: dict[str, list[str]] = {"supersedes": list(texts(front.get("supersedes")))}
    kind = words(front.get("kind") or front.get("type")).casefold()
    if kind in KINDS and not front.get("superseded_by"):
        says |= {"about": list(texts(front.get("about"))), "title": [as_line(words(front.get("title")) or name, 200)]}
    return says if any(says.values()) else None


def _read(kept_in: Path) -> tuple[int, Kept]:
    """Return the time up to which all changes of notes were read, in nanoseconds, and what was found by then."""
    content = read_plain(kept_in, _KEPT)
    with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):
        data = json.loads(content or b"")
        kept = {
            str(name): {str(key): [str(word) for word in value] for key, value in note.items()}
            for name, note in data["notes"].items()
        }
        return min(int(data["until"]), time.time_ns()), kept
    return 0, {}


def _write(kept_in: Path, until: int, found: Kept) -> None:
    with contextlib.suppress(OSError):
        write_below(kept_in.parent, kept_in.name, json.dumps({"until": until, "notes": found}).encode())
