"""How often the operator is alerted of the same: of a failure that repeats once, of one sender's bad files a few times.

Whoever writes ten thousand malformed files is reported as often as somebody who writes a few, and none goes uncounted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from coral.fleet.events import Broken

MOST = 256  # failures that are remembered: a reason may name a moment, and then is never the same
AT_FIRST = 5  # malformed files of one sender that are reported one by one
QUIET_SECONDS = 60.0  # then only so often


class SeenAlerts:
    """The failures of which the operator was alerted."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], None] = {}  # the latest comes last

    def __len__(self) -> int:
        return len(self._known)

    def is_new(self, item: str, reason: str) -> bool:
        """Whether this is to be reported; from now on it was."""
        known = (item, reason) in self._known
        self._known.pop((item, reason), None)
        self._known[item, reason] = None
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return not known


@dataclass(slots=True)
class _Sender:
    since: float
    reported: int = 0
    unreported: int = 0
    reason: str = ""


class AlertLimit:
    """Reports the first few malformed files of each sender, and then how many more there were."""

    def __init__(self) -> None:
        self._senders: dict[str, _Sender] = {}

    def about(self, sender: str, item: str, reason: str, clock: float) -> Iterator[Broken]:
        """An item of `sender` was set aside. `clock`: the run's, in seconds."""
        state = self._senders.setdefault(sender, _Sender(clock))
        if clock - state.since >= QUIET_SECONDS and not state.unreported:
            state.since, state.reported = clock, 0
        if state.reported < AT_FIRST:
            state.reported += 1
            yield Broken(item=item, reason=reason)
        else:
            state.unreported, state.reason = state.unreported + 1, reason

    def left(self, clock: float) -> Iterator[Broken]:
        """How many were not reported one by one, when it is time to say so."""
        for sender, state in self._senders.items():
            if state.unreported and clock - state.since >= QUIET_SECONDS:
                what = "1 more thing" if state.unreported == 1 else f"{state.unreported} more things"
                yield Broken(item=f"{what} of {sender}", reason=f"the last one: {state.reason}")
                state.since, state.unreported = clock, 0
