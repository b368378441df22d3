"""The files of a journal: `000001.jsonl`, `000002.jsonl` ..., each but the first begins with the whole state so far.

Only the newest is written to, and it alone is needed to go on; the others are kept for people, and are packed (gzip).
"""

import contextlib
import errno
import gzip
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from threading import Thread

from attempts.files import sync_folder
from coral.errors import CoralError

PACKED = ".gz"
_NAME = re.compile(r"([0-9]{6,})\.jsonl(\.gz)?")
_BLOCK = 1 << 20
LEVEL = 3


class DamageError(CoralError):
    """A line is not as it was written, or its contents are impossible; `coral.journal.damage` finds out what can be
    saved. `line`: its number; 0 where only an upper bound is known. `why`: the reason in words."""

    def __init__(self, message: str, hint: str, line: int = 0, why: str = "") -> None:
        super().__init__(message, hint)
        self.line, self.why = line, why


def segments(journal: Path) -> list[Path]:
    """Return the files of a journal, oldest first; none before the run's first supervisor."""
    found = _listed(journal)
    if found and len(found) <= max(found) - min(found):
        # A folder that is read while a file in it is packed may show neither of its names: merge two listings.
        found |= _listed(journal)
    return [found[number] for number in sorted(found)]


def _listed(journal: Path) -> dict[int, Path]:
    try:
        # Where both names of a file are there, the plain one comes last and is taken: it reads faster.
        names = sorted((path.name for path in journal.iterdir()), reverse=True)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise CoralError(f"cannot read {journal}: {error.strerror}", "is it your run?") from None
    return {int(match[1]): journal / name for name in names if (match := _NAME.fullmatch(name))}


def number_of(path: Path) -> int:
    match = _NAME.fullmatch(path.name)
    return int(match[1]) if match else 1


def segment_path(journal: Path, number: int) -> Path:
    return journal / f"{number:06d}.jsonl"


def prepare_folder(journal: Path) -> None:
    """Make the folder, and remove files that a crash left half written in it."""
    if not journal.is_dir():
        journal.mkdir(mode=0o700)
        sync_folder(journal.parent)
    for path in journal.glob(".*.jsonl*"):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def open_segment(path: Path) -> Iterator[BufferedIOBase]:
    """Open a segment to read, packed or not. CoralError if it cannot be read."""
    try:
        with _open(path) as file:
            yield file
    except FileNotFoundError:
        raise CoralError(f"cannot read {path}: it is gone", "try again") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        hint = "the run can be resumed all the same: `coral resume`"
        raise DamageError(f"cannot read {path}: {error}", hint, why=str(error)) from None
    except OSError as error:
        raise CoralError(f"cannot read {path}: {error.strerror or error}", "is it your run?") from None


def _open(path: Path) -> BufferedIOBase:
    if path.suffix != PACKED:
        # It may be packed at any moment. Its packed form is there before it is gone, so one of the two opens.
        with contextlib.suppress(FileNotFoundError):
            return _plain(path).open("rb")
        path = path.with_name(path.name + PACKED)
    return gzip.open(_plain(path))


def _plain(path: Path) -> Path:
    """Return the path; OSError if it is not a regular file: a pipe would block its reader for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", str(path))
    return path


class Packing:
    """Compresses finished files in a thread. A failure or an early end leaves a file as it was."""

    def __init__(self) -> None:
        self._closing = False
        self._thread: Thread | None = None

    def start(self, files: Sequence[Path]) -> None:
        """Without effect while earlier files are packed, and where the system starts no further thread: the files stay
        for the next call."""
        if self._thread is None or not self._thread.is_alive():
            thread = Thread(target=self._pack_all, args=(files,), name="packing the journal")
            with contextlib.suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def close(self) -> None:
        self._closing = True
        if self._thread is not None:
            self._thread.join()

    def _pack_all(self, files: Sequence[Path]) -> None:
        for path in files:
            if self._closing:
                return
            unfinished = path.with_name(f".{path.name}{PACKED}")
            try:
                self._pack(path, unfinished)
            except OSError:
                with contextlib.suppress(OSError):
                    unfinished.unlink()

    def _pack(self, path: Path, unfinished: Path) -> None:
        with path.open("rb") as source, unfinished.open("wb") as target:
            with gzip.GzipFile("", "wb", LEVEL, target, mtime=0) as file:
                while not self._closing and (block := source.read(_BLOCK)):
                    file.write(block)
            os.fsync(target.fileno())
        if self._closing:
            unfinished.unlink()
        else:
            unfinished.rename(path.with_name(path.name + PACKED))
            path.unlink()
