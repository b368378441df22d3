"""What has been sent to a target and what has not: a place in the timeline, which is kept in a file of its own.

A message counts as sent once its target took it. A supervisor that dies in between sends it again: at least once.
"""

import contextlib
import os
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path

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

    def waiting(self) -> tuple[list[Notice], int]:
        """The notices that are not sent yet, oldest first, and the place behind them in the timeline."""
        # Where somebody removed the timeline, it was begun anew.
        offset = self.delivery.offset if self._at(self.delivery.offset).mark == self.delivery.mark else 0
        try:
            with open_plain(self._timeline) as file:
                file.seek(offset)
                data = file.read(MOST_BYTES)
        except (OSError, ValueError):
            return [], offset
        whole = data[: data.rfind(b"\n") + 1]
        if not whole and len(data) == MOST_BYTES:
            whole = data  # no line of ours is so long
        run = self._timeline.parent.parent.name
        found = (notice_of(run, line) for line in whole.splitlines())
        wanted = [notice for notice in found if notice is not None and self._wants(notice)]
        return wanted, offset + len(whole)

    def skip(self, offset: int) -> None:
        """There is nothing to send before this place. It is not written down: the next supervisor looks again."""
        self.delivery = replace(self.delivery, offset=offset, mark=self._at(offset).mark)

    def has_sent(self, offset: int) -> None:
        """Everything before this place is sent."""
        self.delivery = self._at(offset)
        self._keep()

    def has_failed(self, problem: str, at: str) -> None:
        since = self.delivery.since if self.delivery.problem else at
        self.delivery = replace(self.delivery, problem=problem, since=since)
        self._keep()

    def _wants(self, notice: Notice) -> bool:
        return notice.level is AlertLevel.ALERT or self._level is AlertLevel.NEWS

    def _at(self, offset: int) -> DeliveryState:
        """The state of a target to which everything before this place was sent."""
        first = max(offset - MARK_BYTES, 0)
        try:
            with open_plain(self._timeline) as file:
                file.seek(first)
                return DeliveryState(offset, zlib.crc32(file.read(offset - first)))
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
