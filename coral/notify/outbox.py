"""Keeps in a file up to which byte of the timeline the notices for a target have been sent.

A message counts as sent when its target has accepted it. If the supervisor dies before it writes that down, the next
one sends the message again: each is sent at least once.
"""

import contextlib
import os
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

from attempts.files import open_plain, parse_object, read_bytes, write_json
from coral.notify.message import AlertLevel, Notice, notice_of

MARK_BYTES = 256  # before the offset, by whose checksum the timeline is recognized
MOST_BYTES = 4_000_000  # of the timeline that are read for one message


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """The state of delivery to a target. `offset`: how many bytes of the timeline are dealt with; `mark`: the checksum
    of the last of these, at most MARK_BYTES. `problem`: why the last message could not be sent, empty if it was sent;
    `since`: when that began."""

    offset: int = 0
    mark: int = 0
    problem: str = ""
    since: str = ""


class Outbox:
    def __init__(self, timeline: Path, file: Path, level: AlertLevel) -> None:
        """`file`: where the state is kept. If there is none yet, delivery begins at the present end of the timeline."""
        self._timeline, self._file, self._level = timeline, file, level
        known = read_delivery(file)
        self.delivery = known or self._at(self._size())
        if known is None:
            self._keep()

    def waiting(self) -> tuple[list[Notice], DeliveryState]:
        """Return the notices that were not sent yet, oldest first, and the state of delivery once they are sent.

        The checksum in that state is of the bytes that were read here, because the timeline may be replaced before the
        notices are sent.
        """
        offset = self.delivery.offset
        try:
            with open_plain(self._timeline) as file:
                before, data = _read(file, offset)
                if zlib.crc32(before) != self.delivery.mark:  # the timeline was removed and begun anew
                    offset = 0
                    before, data = _read(file, offset)
        except (OSError, ValueError):
            return [], self.delivery
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) == MOST_BYTES:
            whole = data  # Coral writes no line that long: skip it
        run = self._timeline.parent.parent.name
        found = (notice_of(run, line) for line in whole.splitlines())
        wanted = [notice for notice in found if notice is not None and self._wants(notice)]
        return wanted, DeliveryState(offset + len(whole), zlib.crc32((before + whole)[-MARK_BYTES:]))

    def skip(self, after: DeliveryState) -> None:
        """Go on from `after`, because no notice lies before it. This is not written down: the next supervisor reads
        those lines again."""
        self.delivery = replace(self.delivery, offset=after.offset, mark=after.mark)

    def has_sent(self, after: DeliveryState) -> None:
        """Write down that everything up to `after` was sent."""
        self.delivery = after
        self._keep()

    def has_failed(self, problem: str, at: str) -> None:
        since = self.delivery.since if self.delivery.problem else at
        self.delivery = replace(self.delivery, problem=problem, since=since)
        self._keep()

    def _wants(self, notice: Notice) -> bool:
        return notice.level is AlertLevel.ALERT or self._level is AlertLevel.NEWS

    def _at(self, offset: int) -> DeliveryState:
        """Return the state of a target to which everything before `offset` was sent."""
        try:
            with open_plain(self._timeline) as file:
                return DeliveryState(offset, zlib.crc32(_read(file, offset, most=0)[0]))
        except (OSError, ValueError):
            return DeliveryState(offset)

    def _size(self) -> int:
        try:
            return os.lstat(self._timeline).st_size
        except OSError:
            return 0

    def _keep(self) -> None:
        # Where it cannot be written (a full disk), what was sent may be sent again.
        with contextlib.suppress(OSError):
            write_json(self._file, asdict(self.delivery), durable=False)


def _read(file: BinaryIO, offset: int, most: int = MOST_BYTES) -> tuple[bytes, bytes]:
    """Return the bytes just before `offset`, of which the checksum is made, and at most `most` bytes after it."""
    first = max(offset - MARK_BYTES, 0)
    file.seek(first)
    return file.read(offset - first), file.read(most)


def read_delivery(file: Path) -> DeliveryState | None:
    """Read the state of delivery; None if there is none or it is damaged."""
    try:
        kept = parse_object(read_bytes(file, 100_000))
    except (OSError, ValueError):
        return None
    offset, mark = kept.get("offset"), kept.get("mark")
    if type(offset) is not int or offset < 0 or type(mark) is not int:
        return None
    return DeliveryState(offset, mark, str(kept.get("problem", "")), str(kept.get("since", "")))
