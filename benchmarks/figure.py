"""Makes figures of raw values: medians, spreads, and whether a target is met. It measures nothing and keeps nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Summary:
    count: int
    median: float
    p10: float
    p90: float
    p99: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Target:
    """The most that a figure should be, in its own unit."""

    median: float
    p99: float | None = None


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile by nearest rank: the smallest value that `percent` of all values do not exceed. It is never
    interpolated: the 99th of fewer than a hundred values is the largest."""
    if not values:
        raise ValueError("there is no percentile of nothing")
    rank = max(1, math.ceil(len(values) * percent / 100))
    return sorted(values)[rank - 1]


def median(values: Sequence[float]) -> float:
    ordered, middle = sorted(values), len(values) // 2
    if not ordered:
        raise ValueError("there is no median of nothing")
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def summarize(values: Sequence[float]) -> Summary:
    return Summary(
        count=len(values),
        median=median(values),
        p10=percentile(values, 10),
        p90=percentile(values, 90),
        p99=percentile(values, 99),
        least=min(values),
        most=max(values),
    )


@dataclass(frozen=True, slots=True)
class Check:
    """A figure compared with its targets. `why`: the explanation to show if it misses one."""

    what: str
    measured: str
    targets: tuple[str, ...]
    met: bool
    why: str = ""


def check(what: str, values: Sequence[float], aim: Target, unit: str, why: str = "") -> Check:
    found = summarize(values)
    pairs = [("median", found.median, aim.median)]
    pairs += [("p99", found.p99, aim.p99)] if aim.p99 is not None else []
    measured = ", ".join(f"{name} {number(value)} {unit}" for name, value, _ in pairs)
    targets = tuple(_verdict(name, value, most, unit) for name, value, most in pairs)
    return Check(what, measured, targets, all(value <= most for _, value, most in pairs), why)


def _verdict(name: str, value: float, most: float, unit: str) -> str:
    if value <= most:
        return f"{name} {most:g} {unit}: met"
    return f"{name} {most:g} {unit}: **missed by {number(100 * (value / most - 1))} %**"


def number(value: float) -> str:
    """Write a number with three significant digits, but all digits before the point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
