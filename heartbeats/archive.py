"""The beats of one agent over a whole run, as JSON lines: compressed from time to time, and bounded.

`beats.jsonl` has the latest; `beats.1.jsonl.gz` those before, `beats.2.jsonl.gz` those before these. Agents may have
replaced any of the files by anything: what cannot be read is skipped.
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
    """Append a beat to the archive whose latest file is `path`; compress that file once it is full. OSError if that
    fails."""
    make_way(path)
    append_bytes(path, json.dumps(to_dict(beat)).encode() + b"\n")
    if path.stat().st_size > FILE_BYTES:
        _compress(path)


def beats_in(path: Path) -> Iterator[Beat]:
    """Yield all beats that are kept, the earliest first."""
    for number in range(KEPT, 1, -1):
        yield from _beats(_bytes(_compressed(path, number), compressed=True))
    before, latest = _bytes(_compressed(path, 1), compressed=True), _bytes(path, compressed=False)
    if not latest.startswith(before):  # else `_compress` was killed before its last step
        yield from _beats(before)
    yield from _beats(latest)


def _compress(path: Path) -> None:
    """Make the latest file the first compressed one; the last compressed one is dropped."""
    data = _bytes(path, compressed=False)
    # An earlier call may have been killed between its last two steps: then the first file has the same beats.
    if not data.startswith(_bytes(_compressed(path, 1), compressed=True)):
        for number in range(KEPT - 1, 0, -1):
            with contextlib.suppress(OSError):  # there is none, or a folder is in the way
                _compressed(path, number).replace(_compressed(path, number + 1))
    try:
        write_bytes(_compressed(path, 1), gzip.compress(data, 3), durable=False, mode=0o600)
    finally:
        path.unlink()  # the file must not grow further, even if its beats are lost


def _compressed(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number}{path.suffix}.gz")


def _bytes(path: Path, *, compressed: bool) -> bytes:
    """Return the content of a file, at most READ_BYTES; empty if it cannot be read."""
    with contextlib.suppress(OSError, ValueError, EOFError, zlib.error), open_plain(path) as file:
        source = gzip.GzipFile(fileobj=file) if compressed else file
        return source.read(READ_BYTES)
    return b""


def _beats(data: bytes) -> Iterator[Beat]:
    for line in data.splitlines():
        with contextlib.suppress(*BAD_DATA):
            yield from_dict(parse_object(line))
