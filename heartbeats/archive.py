"""The beats of one agent over a whole run, as JSON lines: compressed from time to time, and bounded.

`beats.jsonl` are the latest; `beats.1.jsonl.gz` those before, `beats.2.jsonl.gz` those before these. Agents may have
replaced any of the files by anything: what cannot be read is passed over.
"""

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from attempts.fields import BAD_DATA
from attempts.files import append_bytes, make_way, open_plain, parse_object, write_bytes
from heartbeats.beat import Beat, from_dict, to_dict

FILE_BYTES = 1 << 20  # of JSON lines, after which they are compressed: about half a day of an agent at work
KEPT = 40  # compressed files
READ_BYTES = 4 * FILE_BYTES  # of one file; what somebody else wrote may be longer


def append(path: Path, beat: Beat) -> None:
    """Add a beat to the archive whose latest file is `path`. OSError where it cannot be written."""
    make_way(path)
    append_bytes(path, json.dumps(to_dict(beat)).encode() + b"\n")
    if path.stat().st_size > FILE_BYTES:
        _compress(path)


def beats_in(path: Path) -> Iterator[Beat]:
    """All beats that are kept, the earliest first."""
    for number in range(KEPT, 0, -1):
        yield from _read(_compressed(path, number), compressed=True)
    yield from _read(path, compressed=False)


def _compress(path: Path) -> None:
    """Make the latest file the first compressed one; the last of those is dropped."""
    with open_plain(path) as file:
        data = file.read(READ_BYTES)
    for number in range(KEPT - 1, 0, -1):
        with contextlib.suppress(OSError):  # there is none, or a folder is in the way
            _compressed(path, number).replace(_compressed(path, number + 1))
    try:
        write_bytes(_compressed(path, 1), gzip.compress(data, 3), durable=False, mode=0o600)
    finally:
        path.unlink()  # it is bounded, whatever becomes of what it held


def _compressed(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}{path.suffix}.gz")


def _read(path: Path, *, compressed: bool) -> Iterator[Beat]:
    with contextlib.suppress(OSError, ValueError, EOFError, zlib.error), open_plain(path) as file:
        source = gzip.GzipFile(fileobj=file) if compressed else file
        for line in source.read(READ_BYTES).splitlines():
            with contextlib.suppress(*BAD_DATA):
                yield from_dict(parse_object(line))
