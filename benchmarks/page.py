"""docs/benchmarks.md, from the kept results and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.benchmark import Benchmark
from benchmarks.figure import Result


def text(benchmarks: Sequence[Benchmark], results: Mapping[str, Result]) -> str:
    lines = [_HEAD]
    for benchmark in benchmarks:
        lines += ["", *_section(benchmark, results)]
    return "\n".join([*lines, "", _NOT_MEASURED]) + "\n"


def _section(benchmark: Benchmark, results: Mapping[str, Result]) -> list[str]:
    if any(name == benchmark.NAME or name.startswith(f"{benchmark.NAME}-") for name in results):
        return benchmark.section(results)
    return [f"## {benchmark.NAME}", "", f"Not measured yet: `python -m benchmarks {benchmark.NAME}`."]


_HEAD = """# How fast Coral is

`make bench` measures all of this on your machine (half an hour) and writes this page; `python -m benchmarks
NAME` measures one part, `--quick` tries it out. The raw values lie in
[benchmarks/results](../benchmarks/results).

Every figure comes from real runs in a temporary folder: real processes, real git, a real disk, real signals.
Percentiles are measured values (nearest rank), so with fewer than a hundred values the p99 is the largest.
Nothing is left out as an outlier. A target that is missed says so."""

_NOT_MEASURED = """## Not measured yet

- A supervisor with 100 idle agents and 10,000 attempts (target: under 1 % of a core).
- 500 agents with one attempt per agent and ten minutes (target: under 10 % of a core, under 150 MB).
- `coral eval` after 100,000 attempts (target: as fast as the first); here it is measured after 1,000.
- `coral log` and `coral status` at 100,000 attempts (target: 150 ms)."""
