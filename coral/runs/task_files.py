"""Keeps the files of a run's task as they were when its supervisor began: with other files, scores would mean something
else.

Agents without a sandbox can write there. What is changed, removed or added is restored before each grade, and reported;
the journal keeps the digests, so that a resume finds what was changed while nobody supervised.
"""

import contextlib
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from importlib.machinery import all_suffixes
from pathlib import Path
from typing import Any

from attempts.files import Witness, hidden, open_plain, parse_object, read_bytes, witness
from coral.grading.kinds import list_of
from workspace.layout import Layout

HELD = 16_000_000  # bytes of files that are kept in memory; what is more is restored from the task's folder
_SINGLE = ("task.yaml", "task.source.yaml", "seed", "hub.config", "HEARTBEAT.md", "grader.venv", "holdout.venv")
_GRADERS = ("grader", "holdout")
_LISTS = [list_of(Path(name)).name for name in _GRADERS]
_CACHE = "__pycache__"
_PIECE = 1 << 20


@dataclass(slots=True)
class _Known:
    """A file as it should be. `seen`: its witness when it was last compared. `content`: None if the files are too large
    to keep."""

    digest: str
    mode: int
    seen: Witness | None
    content: bytes | None


class TaskFiles:
    def __init__(self, layout: Layout, source: Path) -> None:
        """Read all files. One that cannot be read is not restored later. `source`: the task's folder."""
        self._private, self._source = layout.private, source
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        space = HELD
        for name in names(layout.private):
            path = layout.private / name
            with contextlib.suppress(OSError, ValueError):
                seen = witness(path)
                with open_plain(path) as file:
                    found = os.fstat(file.fileno())
                    content = file.read() if found.st_size <= space else None
                space -= len(content or b"")
                digest = digest_of(path) if content is None else hashlib.sha256(content).hexdigest()
                self._known[name] = _Known(digest, found.st_mode & 0o777, seen, content)

    @property
    def digests(self) -> dict[str, str]:
        return {name: known.digest for name, known in self._known.items()}

    def restore(self) -> list[tuple[str, str]]:
        """Restore what is not as it should be; returns the name of each file, and what was wrong with it. OSError if
        there is no other copy of a file: then nothing may be graded with it. May be called in any thread."""
        with self._lock:
            # First the lists, which say what is data; last the others, because a link put there hides a missing file.
            lists = {name: known for name, known in self._known.items() if name in _LISTS}
            return [*self._restore_ours(lists), *self._remove_others(), *self._restore_ours(self._known)]

    def _restore_ours(self, files: Mapping[str, _Known]) -> Iterator[tuple[str, str]]:
        for name, known in files.items():
            path = self._private / name
            if witness(path) == known.seen:
                continue
            problem = _problem(path, known)
            if problem == _WRITTEN_TO:
                path.chmod(known.mode)
            else:
                self._write(path, name, known)
            known.seen = witness(path)
            yield name, problem

    def _remove_others(self) -> Iterator[tuple[str, str]]:
        for name in _added(self._private, self._known.keys()):
            path = self._private / name
            if _CACHE in path.parts:
                path.unlink(missing_ok=True)
                continue
            aside = self._private / "foreign"
            aside.mkdir(mode=0o700, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                path.rename(aside / f"{time.time_ns()}-{path.name}")
                yield name, "was put there"

    def _write(self, path: Path, name: str, known: _Known) -> None:
        for folder in [self._private / parent for parent in reversed(Path(name).parents)][1:]:
            if folder.is_symlink() or not folder.is_dir():
                if os.path.lexists(folder):
                    folder.rename(hidden(folder))
                folder.mkdir(mode=0o700)
        if path.is_dir() and not path.is_symlink():
            path.rename(hidden(path))
        unfinished = path.with_name(f".{path.name}.{time.time_ns()}")
        if known.content is not None:
            unfinished.write_bytes(known.content)
        else:
            original = self._source_of(name)
            if digest_of(original) != known.digest:
                raise OSError(f"private/{name} was changed, and no other copy of it is known: restore it")
            shutil.copyfile(original, unfinished)
        unfinished.chmod(known.mode)
        unfinished.replace(path)

    def _source_of(self, name: str) -> Path:
        """Return the file in the task's folder from which this one was copied."""
        return self._source.joinpath(*Path(name).parts[1:])


def names(private: Path) -> list[str]:
    """Return the files that belong to the task, as paths in the folder `private`; files that a grader has left beside
    them are not listed."""
    found = [name for name in (*_SINGLE, *_LISTS) if (private / name).is_file()]
    for folder, listed in zip(_GRADERS, _LISTS, strict=True):
        found += [f"{folder}/{name}" for name in _listed(private / listed).get("files", ())]
    return found


def changed(private: Path, digests: Mapping[str, str], expected: Mapping[str, str]) -> list[str]:
    """Return the task's files that have neither these digests nor those that were announced for a change (see
    `Journal.expect_files`), and files that were added. None are returned without digests, because then nothing is
    known."""
    if not digests:
        return []
    known = {**digests, **expected}
    found = [name for name in known if digest_of(private / name) not in (digests.get(name, ""), expected.get(name))]
    return [*found, *(name for name in _added(private, known.keys()) if _CACHE not in Path(name).parts)]


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a regular file's content, in hexadecimal; "" where there is none that can be read."""
    digest = hashlib.sha256()
    try:
        with open_plain(path) as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
    except (OSError, ValueError):
        return ""
    return digest.hexdigest()


_WRITTEN_TO = "was written to, and is as it was"


def _problem(path: Path, known: _Known) -> str:
    if not os.path.lexists(path):
        return "was deleted"
    is_same = not path.is_symlink() and path.is_file() and digest_of(path) == known.digest
    return _WRITTEN_TO if is_same else "was changed"


def _listed(path: Path) -> dict[str, Any]:
    try:
        return parse_object(read_bytes(path))
    except (OSError, ValueError):
        return {}


def _added(private: Path, known: Collection[str]) -> list[str]:
    """Return files among those of a grader that are not its own: in its folders of data, or of a kind that Python would
    import instead of another module. Other files that a grader leaves stay. Also files of the task that it may have and
    has not, such as the name of an environment."""
    endings = (*all_suffixes(), ".pth")
    found = [name for name in (*_SINGLE, *_LISTS) if name not in known and os.path.lexists(private / name)]
    for grader in _GRADERS:
        data = _listed(list_of(private / grader)).get("data", ())
        for root, folders, files in os.walk(private / grader):
            links = [name for name in folders if Path(root, name).is_symlink()]
            is_package = any(name.startswith("__init__.") for name in files)
            for path in (Path(root, name) for name in (*files, *links)):
                name, inner = path.relative_to(private).as_posix(), path.relative_to(private / grader).as_posix()
                is_data = inner.startswith(tuple(f"{folder}/" for folder in data)) or inner in data
                is_code = inner.endswith(endings) or is_package or path.is_symlink()
                if name not in known and (is_data or is_code):
                    found.append(name)
    return sorted(found)
