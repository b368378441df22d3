"""Adds up the usage of a launch, from figures that cover a step, the launch or the whole conversation."""

from dataclasses import replace

from coral.runtimes.model import Counted, Usage


class UsageTotal:
    """Takes the figures of one launch in order. `figure`: their total; None before the first."""

    def __init__(self) -> None:
        self.figure: Usage | None = None

    def take(self, usage: Usage) -> None:
        """Steps are added up; any other figure includes all before it."""
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
