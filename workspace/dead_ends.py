"""What is known not to work, from the notes of the kind `dead-end`, for whoever is about to try it again.

`coral eval` asks at each submission, so this imports little, and a note is read again only if its file has changed:
what was found is kept in a file of the agent's own. A dead end is met by an attempt that touches everything it is
`about`: each is named in the attempt's message or in a changed line, or is a changed file.
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
_MUCH = 16_384  # bytes read of a note: its head is wanted
_KEPT = 16_000_000  # bytes of the file that keeps what was found
_SLACK = 2_000_000_000  # nanoseconds by which a file may look older than it is
_MANY = 10_000
_DEEP = 3

Kept = dict[str, dict[str, list[str]]]


def find_dead_ends(shared: Path, kept_in: Path) -> list[tuple[str, str, list[str]]]:
    """The dead ends in a folder of knowledge that no note supersedes: name, title, what each is about. `kept_in`: a
    file for what was found, which may be missing or damaged."""
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
    """Whether an attempt touches everything that a dead end is about. `changes`: the paths of the files that it
    changes, and the lines; asked only if the message does not say enough."""
    left = [word for word in about if not names(message, word)]
    if not left:
        return True
    files, lines = changes()
    touched = {part.casefold() for path in files for part in (path, path.rpartition("/")[2])}
    return all(word.casefold() in touched or names(lines, word) for word in left)


def names(text: str, word: str) -> bool:
    """Whether a text has a word, a name or a path in it, as a whole and in whatever case."""
    return re.search(rf"(?<!\w){re.escape(word.casefold())}(?!\w)", text.casefold()) is not None


def _read_note(shared: Path, name: str) -> dict[str, list[str]] | None:
    """What a note says of dead ends: what it is about, and what it supersedes; None where that is nothing."""
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
    """Up to when all was read, in nanoseconds, and what was found by then."""
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
