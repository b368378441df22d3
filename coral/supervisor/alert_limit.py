"""What the operator is told of files that are not what they should be: the first few, then how many more there were.

Rule: whoever writes ten thousand of them is told of as often as somebody who writes a few, and none goes uncounted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from coral.fleet.events import Broken

AT_FIRST = 5  # complaints about one sender that are told one by one
QUIET_SECONDS = 60.0  # then only so often


@dataclass(slots=True)
class _Sender:
    since: float
    told: int = 0
    untold: int = 0
    reason: str = ""


class AlertLimit:
    def __init__(self) -> None:
        self._senders: dict[str, _Sender] = {}

    def about(self, sender: str, item: str, reason: str, clock: float) -> Iterator[Broken]:
        """Something of `sender` was set aside. `clock`: the run's, in seconds."""
        state = self._senders.setdefault(sender, _Sender(clock))
        if clock - state.since >= QUIET_SECONDS and not state.untold:
            state.since, state.told = clock, 0
        if state.told < AT_FIRST:
            state.told += 1
            yield Broken(item=item, reason=reason)
        else:
            state.untold, state.reason = state.untold + 1, reason

    def left(self, clock: float) -> Iterator[Broken]:
        """How many were not told one by one, when it is time to say so."""
        for sender, state in self._senders.items():
            if state.untold and clock - state.since >= QUIET_SECONDS:
                what = "1 more thing" if state.untold == 1 else f"{state.untold} more things"
                yield Broken(item=f"{what} of {sender}", reason=f"the last one: {state.reason}")
                state.since, state.untold = clock, 0
