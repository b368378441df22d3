"""Which nodes get no grade for a while, because a grade failed there for its disk.

The slots of such a node are free again at once, so that it would take all grades that wait, and fail each.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from coral.cluster.bridge import report_left_out

FIRST_SECONDS, LONGEST_SECONDS = 300.0, 3600.0  # for which a node is left out: twice as long each time in a row


@dataclass
class _Node:
    address: str
    why: str
    until: float
    seconds: float


class LeftOut:
    def __init__(self, folder: Path) -> None:
        """`folder`: that of the bridge, where the supervisor reads which nodes there are."""
        self._folder = folder
        self._nodes: dict[str, _Node] = {}
        self._changing = threading.Lock()
        self.report()

    def add(self, node: str, address: str, why: str) -> None:
        """Leave a node out from now on, unless it is already."""
        with self._changing:
            known, now = self._nodes.get(node), time.monotonic()
            if known is None or now >= known.until:
                seconds = FIRST_SECONDS if known is None else min(2 * known.seconds, LONGEST_SECONDS)
                self._nodes[node] = _Node(address, " ".join(why.split()), now + seconds, seconds)
        self.report()

    def forget(self, node: str) -> None:
        """A grade has ended on a node that is not left out any more: the next time is the first one again."""
        with self._changing:
            if (known := self._nodes.get(node)) is not None and time.monotonic() >= known.until:
                del self._nodes[node]

    def now(self) -> dict[str, str]:
        """Return the reasons by the ids of the nodes that are left out now."""
        return {node: known.why for node, known in self._present().items()}

    def report(self) -> None:
        report_left_out(self._folder, {known.address: known.why for known in self._present().values()})

    def _present(self) -> dict[str, _Node]:
        with self._changing:
            now = time.monotonic()
            return {node: known for node, known in self._nodes.items() if now < known.until}
