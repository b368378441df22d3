"""What a launch has used by now, out of figures that count since a step, a launch or a conversation began."""

from dataclasses import replace

from coral.runtimes.model import Counted, Usage


class UsageTotal:
    """The figures of one launch in their order. `figure`: what they come to; None before the first."""

    def __init__(self) -> None:
        self.figure: Usage | None = None

    def take(self, usage: Usage) -> None:
        """Steps are added up; any other figure holds everything before it."""
        if usage.counted is Counted.STEP:
            usage = replace(_added(self.figure or Usage(), usage), counted=Counted.LAUNCH)
        self.figure = usage


def _added(one: Usage, other: Usage) -> Usage:
    return Usage(
        input=one.input + other.input,
        cached=one.cached + other.cached,
        output=one.output + other.output,
        cost=one.cost if other.cost is None else (one.cost or 0.0) + other.cost,
    )
