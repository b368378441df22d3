"""Usage as it was spent: differences, out of figures that count since a step, a launch or a conversation began."""

from dataclasses import replace

from coral.runtimes.model import Counted, Usage

NOTHING = Usage()


class Tally:
    """The figures of one agent, launch by launch in their order."""

    def __init__(self) -> None:
        self.total = Usage()
        self._last: dict[str, Usage] = {}

    def add(self, usage: Usage, session: str, launch: int) -> Usage:
        """What was spent since the last figure of the same count. A figure that has fallen began anew."""
        spent = replace(usage, counted=Counted.STEP)
        if usage.counted is not Counted.STEP:
            key = f"session {session}" if usage.counted is Counted.SESSION else f"launch {launch}"
            spent = _since(self._last.get(key, NOTHING), usage)
            self._last[key] = usage
        self.total = added(self.total, spent)
        return spent


def added(one: Usage, other: Usage) -> Usage:
    return Usage(
        input=one.input + other.input,
        cached=one.cached + other.cached,
        output=one.output + other.output,
        cost=one.cost if other.cost is None else (one.cost or 0.0) + other.cost,
    )


def _since(before: Usage, now: Usage) -> Usage:
    fallen = now.input < before.input or now.output < before.output or (now.cost or 0.0) < (before.cost or 0.0)
    before = NOTHING if fallen else before
    return Usage(
        input=now.input - before.input,
        cached=max(now.cached - before.cached, 0),
        output=now.output - before.output,
        cost=None if now.cost is None else now.cost - (before.cost or 0.0),
    )
