"""One line: JSON that begins with its checksum, which covers every line before it in the file as well.

So whatever was changed, lost, doubled or put in another order is noticed. Lines of the first format have no checksum:
they may only come before those that have one.
"""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from coral.errors import CoralError
from coral.journal.segments import number_of, opened

FORMAT = 2
_START = b'{"sum":"'
_SUM = slice(len(_START), len(_START) + 8)
_AFTER = _SUM.stop + len(b'",')
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def seal(line: Mapping[str, Any], before: int) -> tuple[bytes, int]:
    """A line as bytes, and its checksum; `before` is that of the line before it, 0 for the first."""
    rest = _ENCODER.encode(line).encode()[1:] + b"\n"
    checksum = crc32(rest, before)
    return b'%s%08x",%s' % (_START, checksum, rest), checksum


class Lines:
    """The whole lines of one file, in their order. Afterwards `head` is how long the first one is, `end` where the
    last one ends, and `sum` its checksum."""

    def __init__(self, path: Path, *, may_be_torn: bool) -> None:
        """`may_be_torn`: this is the file that is written to, and a crash may have cut its last line."""
        self.path = path
        self.number = 0
        self.head = 0
        self.end = 0
        self.sum = 0
        self._sealed = False
        self._may_be_torn = may_be_torn

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for raw in self.raw():
            yield self.parse(raw)

    def raw(self) -> Iterator[bytes]:
        """The lines as bytes, found to be as they were written. CoralError names the first that is not."""
        with opened(self.path) as file:
            for self.number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    if self._may_be_torn:
                        return
                    raise self.damaged("it was cut")
                self._check(raw)
                self.end += len(raw)
                self.head = self.head or self.end
                yield raw

    def parse(self, raw: bytes) -> dict[str, Any]:
        try:
            # Only without a checksum may a figure be damaged and still be one; to look at each takes longer.
            line = json.loads(raw, parse_constant=_no_constant, parse_float=None if self._sealed else _finite)
        except (ValueError, RecursionError) as error:
            raise self.damaged(error) from None
        if not isinstance(line, dict) or not _is_time(line.get("at", 0)):
            raise self.damaged("it is none of ours")
        version = line.get("format", FORMAT)
        if not isinstance(version, int) or version > FORMAT:
            raise CoralError(f"cannot read {self.path}: it was written by a newer version", "upgrade coral-fleet")
        if not self._sealed and version != 1 and self.number == 1:
            raise self.damaged("its checksum is missing")
        return line

    def damaged(self, why: object) -> CoralError:
        """Names the file and the line, and says what to do about it."""
        cut = f"remove {self.path.name}" if self.number == 1 and number_of(self.path) > 1 else "cut it before that line"
        message = f"cannot read {self.path}: line {self.number} is damaged: {why}"
        return CoralError(message, f"copy the run folder, then {cut}: the run goes on from there")

    def _check(self, raw: bytes) -> None:
        if not raw.startswith(_START):
            if self._sealed:
                raise self.damaged("its checksum is missing")
            return
        self._sealed = True
        self.sum = crc32(raw[_AFTER:], self.sum)
        if raw[_SUM] != b"%08x" % self.sum:
            raise self.damaged("it is not as it was written")


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _finite(figure: str) -> float:
    found = float(figure)
    if not math.isfinite(found):
        raise ValueError(f"{figure} is too large")
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
