"""What has been sent to a target and what has not: a place in the timeline, which is kept in a file of its own.

A message counts as sent once its target took it. A supervisor that dies in between sends it again: at least once.
"""

import contextlib
import os
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

from attempts.files import open_plain, parse_object, read_bytes, write_json
from coral.notify.message import AlertLevel, Notice, notice_of

MARK_BYTES = 256  # before the place, by which the timeline is known again
MOST_BYTES = 4_000_000  # of the timeline that are read for one message


@dataclass(frozen=True, slots=True)
class DeliveryState:
    """How a target stands. `offset`: bytes of the timeline that are dealt with, the last of which have the checksum
    `mark`; `problem`: why the last message could not be sent, since `since`; empty if it was sent."""

    offset: int = 0
    mark: int = 0
    problem: str = ""
    since: str = ""


class Outbox:
    def __init__(self, timeline: Path, file: Path, level: AlertLevel) -> None:
        """`file`: where the place is kept. A target that is new to a run that goes on begins at its present end."""
        self._timeline, self._file, self._level = timeline, file, level
        known = read_delivery(file)
        self.delivery = known or self._at(self._size())
        if known is None:
            self._keep()

    def waiting(self) -> tuple[list[Notice], DeliveryState]:
        """The notices that are not sent yet, oldest first, and the state of the target once they are.

        The checksum is that of the bytes that were read: the timeline may be replaced before they are sent.
        """
        offset = self.delivery.offset
        try:
            with open_plain(self._timeline) as file:
                before, data = _read(file, offset)
                if zlib.crc32(before) != self.delivery.mark:  # somebody removed the timeline, and it was begun anew
                    offset = 0
                    before, data = _read(file, offset)
        except (OSError, ValueError):
            return [], self.delivery
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) == MOST_BYTES:
            whole = data  # no line of ours is so long
        run = self._timeline.parent.parent.name
        found = (notice_of(run, line) for line in whole.splitlines())
        wanted = [notice for notice in found if notice is not None and self._wants(notice)]
        return wanted, DeliveryState(offset + len(whole), zlib.crc32((before + whole)[-MARK_BYTES:]))

    def skip(self, after: DeliveryState) -> None:
        """There is nothing to send up to there. It is not written down: the next supervisor looks again."""
        self.delivery = replace(self.delivery, offset=after.offset, mark=after.mark)

    def has_sent(self, after: DeliveryState) -> None:
        """Everything up to there is sent."""
        self.delivery = after
        self._keep()

    def has_failed(self, problem: str, at: str) -> None:
        since = self.delivery.since if self.delivery.problem else at
        self.delivery = replace(self.delivery, problem=problem, since=since)
        self._keep()

    def _wants(self, notice: Notice) -> bool:
        return notice.level is AlertLevel.ALERT or self._level is AlertLevel.NEWS

    def _at(self, offset: int) -> DeliveryState:
        """The state of a target to which everything before this place was sent."""
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
    """The last bytes before the place, which its checksum is of, and at most `most` of those after it."""
    first = max(offset - MARK_BYTES, 0)
    file.seek(first)
    return file.read(offset - first), file.read(most)


def read_delivery(file: Path) -> DeliveryState | None:
    """None where nothing is known."""
    try:
        kept = parse_object(read_bytes(file, 100_000))
    except (OSError, ValueError):
        return None
    offset, mark = kept.get("offset"), kept.get("mark")
    if type(offset) is not int or offset < 0 or type(mark) is not int:
        return None
    return DeliveryState(offset, mark, str(kept.get("problem", "")), str(kept.get("since", "")))
