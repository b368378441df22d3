"""The nodes that get no grade for a while, because a grade failed there for its disk.

The slots of such a node are free again at once, so that it would take all grades that wait, and fail each.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path

from coral.cluster.bridge import report_excluded

FIRST_SECONDS, LONGEST_SECONDS = 300.0, 3600.0  # for which a node is excluded: twice as long each time in a row


@dataclass
class _Node:
    address: str
    why: str
    until: float
    seconds: float


class ExcludedNodes:
    def __init__(self, folder: Path) -> None:
        """`folder`: that of the bridge, where the supervisor reads which nodes are excluded."""
        self._folder = folder
        self._nodes: dict[str, _Node] = {}
        self._changing = threading.Lock()
        self.report()

    def add(self, node: str, address: str, why: str) -> None:
        """Exclude a node from now on, unless it is excluded already."""
        with self._changing:
            known, now = self._nodes.get(node), time.monotonic()
            if known is None or now >= known.until:
                seconds = FIRST_SECONDS if known is None else min(2 * known.seconds, LONGEST_SECONDS)
                self._nodes[node] = _Node(address, " ".join(why.split()), now + seconds, seconds)
        self.report()

    def forget(self, node: str) -> None:
        """Forget how long a node was excluded, unless it still is: a grade has ended there, so its disk works again."""
        with self._changing:
            if (known := self._nodes.get(node)) is not None and time.monotonic() >= known.until:
                del self._nodes[node]

    def now(self) -> dict[str, str]:
        """Return the reasons by the ids of the nodes that are excluded now."""
        return {node: known.why for node, known in self._present().items()}

    def report(self) -> None:
        report_excluded(self._folder, {known.address: known.why for known in self._present().values()})

    def _present(self) -> dict[str, _Node]:
        with self._changing:
            now = time.monotonic()
            return {node: known for node, known in self._nodes.items() if now < known.until}
