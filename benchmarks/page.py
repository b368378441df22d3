"""Makes docs/benchmarks.md from the kept results and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.benchmark import Benchmark
from benchmarks.figure import Check
from benchmarks.results import Result


def text(benchmarks: Sequence[Benchmark], results: Mapping[str, Result]) -> str:
    there = [benchmark for benchmark in benchmarks if _is_there(benchmark, results)]
    checks = [check for benchmark in there for check in benchmark.checks(results)]
    lines = [_HEAD, "", "## Targets", "", *_glance(checks)]
    for benchmark in there:
        lines += ["", *benchmark.section(results)]
    missing = [f"- `python -m benchmarks {benchmark.NAME}`" for benchmark in benchmarks if benchmark not in there]
    if missing:
        lines += ["", "## Not measured yet", "", *missing]
    return "\n".join(lines) + "\n"


def _is_there(benchmark: Benchmark, results: Mapping[str, Result]) -> bool:
    return any(name == benchmark.NAME or name.startswith(f"{benchmark.NAME}-") for name in results)


def _glance(checks: Sequence[Check]) -> list[str]:
    lines = ["| figure | measured | target |", "|---|---|---|"]
    lines += [f"| {check.what} | {check.measured} | {'; '.join(check.targets)} |" for check in checks]
    missed = [f"- Why {check.what} misses it: {check.why}" for check in checks if not check.met]
    return [*lines, "", *missed] if missed else lines


_HEAD = """# How fast Coral is

`make bench` measures all of this on your machine and writes this page, in about half an hour; circle packing
takes another twenty minutes, with `make bench-packing`, and the dashboard an hour and a half, with
`make bench-dashboard`, which needs Chromium. `python -m benchmarks cluster` measures grades on a Ray cluster, for a
quarter of an hour, and needs `[ray]`. `python -m benchmarks NAME` measures one part, `--quick` tries it out. The raw
values lie in [benchmarks/results](../benchmarks/results).

Every figure comes from real runs in a temporary folder: real processes, real git, a real disk, real signals.
Python may keep the bytecode that it compiles, as it does by default; without it, every start takes longer.
Percentiles are measured values (nearest rank), so with fewer than a hundred values the p99 is the largest.
Nothing is left out as an outlier. A target that is missed says so."""
