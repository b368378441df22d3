"""The lines of a journal file: JSON that begins with a checksum over this line and every line before it in the file.

A line that was changed, lost, doubled or put in another order is therefore noticed.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from coral.errors import CoralError
from coral.journal.segments import DamageError, open_segment, segments

FORMAT = 6
DAMAGED_HINT = "`coral resume` goes on from the last good state before it, and keeps the damaged file"
_START = b'{"sum":"'
_SUM = slice(len(_START), len(_START) + 8)
_AFTER = _SUM.stop + len(b'",')
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def seal(line: Mapping[str, Any], before: int) -> tuple[bytes, int]:
    """Return the bytes of a line, and its checksum. `before`: the checksum of the line before it, 0 for the first."""
    rest = _ENCODER.encode(line).encode()[1:] + b"\n"
    checksum = crc32(rest, before)
    return b'%s%08x",%s' % (_START, checksum, rest), checksum


def follows(raw: bytes, before: bytes, *, is_second: bool = False) -> bool:
    """Return whether the line `raw` is as it was written, right after the line `before`. Of `before`, only its own
    checksum need be intact; if it is the first line of a file (`is_second`: `raw` is the second), either its checksum
    or the rest of it."""
    if not (raw.startswith(_START) and before.startswith(_START) and raw.endswith(b"\n")):
        return False
    sums = [crc32(before[_AFTER:])] if is_second else []
    with contextlib.suppress(ValueError):
        sums.append(int(before[_SUM], 16))
    return any(raw[_SUM] == b"%08x" % crc32(raw[_AFTER:], sum) for sum in sums)


class Lines:
    """Reads the whole lines of one file, in their order. After the last one, `head` is the length of the first line,
    `end` the offset at which the last line ends, and `sum` its checksum."""

    def __init__(self, path: Path, *, may_be_torn: bool) -> None:
        """`may_be_torn`: this is the file that is written to, and a crash may have cut its last line."""
        self.path = path
        self.number = 0
        self.head = 0
        self.end = 0
        self.sum = 0
        self._may_be_torn = may_be_torn

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for raw in self.raw():
            yield self.parse(raw)

    def raw(self) -> Iterator[bytes]:
        """Yield the lines as bytes, with their checksums verified. DamageError names the first damaged line."""
        with open_segment(self.path) as file:
            for self.number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    if self._may_be_torn:
                        return
                    raise self.damaged("it was cut")
                self._check(raw)
                self.end += len(raw)
                self.head = self.head or self.end
                yield raw

    def heads(self) -> Iterator[dict[str, Any]]:
        """Yield the first line of the file, and that of each supervisor that went on in it."""
        for raw in self.raw():
            if raw.startswith(b'"format":', _AFTER):
                yield self.parse(raw)

    def parse(self, raw: bytes) -> dict[str, Any]:
        try:
            line = json.loads(raw, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise self.damaged(error) from None
        if not isinstance(line, dict) or not _is_time(line.get("at", 0)):
            raise self.damaged("it is none of ours")
        if line.get("format", FORMAT) != FORMAT:
            raise self._of_another_version(line)
        return line

    def damaged(self, why: object) -> DamageError:
        """Return the error for the current line; it names the file, the line and what to do."""
        message = f"cannot read {self.path}: line {self.number} is damaged: {why}"
        return DamageError(message, DAMAGED_HINT, self.number, str(why))

    def _of_another_version(self, line: Mapping[str, Any]) -> CoralError:
        found, version = str(line["format"])[:40], str(line.get("version", "not known"))[:40]
        message = f"cannot read {self.path}: its format is {found}; this version reads {FORMAT} alone"
        hint = f"use the version of coral-fleet that wrote it ({version}), or start the task anew with `coral start`"
        return CoralError(message, hint)

    def _check(self, raw: bytes) -> None:
        if not raw.startswith(_START):
            self.parse(raw)  # an older format, which had no checksums, is named as such
            raise self.damaged("its checksum is missing")
        self.sum = crc32(raw[_AFTER:], self.sum)
        if raw[_SUM] != b"%08x" % self.sum:
            raise self.damaged("it is not as it was written")


def lines_of_files(journal: Path) -> list[Lines]:
    """Return one reader for each file of a journal, oldest first. Only in the newest may a crash have torn the last
    line."""
    files = segments(journal)
    return [Lines(file, may_be_torn=file == files[-1]) for file in files]


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
