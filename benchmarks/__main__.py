"""`python -m benchmarks [NAME ...]`: measure, keep the results, write docs/benchmarks.md from them.

A quick try is shown and not kept: a figure is what was measured in full.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from benchmarks import (
    asking,
    cluster,
    command_help,
    dashboard,
    evals,
    failing,
    fleet,
    idle,
    interrupt,
    looking,
    native,
    noise,
    packing,
    page,
    prompts,
    pulse,
    resent,
    resume,
    scale,
    sealing,
    start,
    tabs,
    tick,
)
from benchmarks.arena import BenchmarkError
from benchmarks.benchmark import Ask, Benchmark
from benchmarks.figure import summarize
from benchmarks.results import Result, as_json, read_all, write

ALL: tuple[Benchmark, ...] = (
    interrupt,
    evals,
    command_help,
    start,
    failing,
    idle,
    fleet,
    tick,
    resume,
    scale,
    looking,
    sealing,
    noise,
    prompts,
    pulse,
    dashboard,
    tabs,
    asking,
    resent,
    packing,
    native,
    cluster,
)
# Measured only if they are named: they take longer than all the others, or need a browser or Ray.
ASKED_FOR: tuple[Benchmark, ...] = (dashboard, tabs, packing, native, cluster)
RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def main() -> int:
    args = _arguments()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # what is measured starts as it does after its first use
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ended from outside, a benchmark cleans up as for Ctrl-C
    try:
        for benchmark in ALL:
            if not args.page and benchmark.NAME in (
                args.names or [other.NAME for other in ALL if other not in ASKED_FOR]
            ):
                _measure(benchmark, args)
    except BenchmarkError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("benchmarks: interrupted; nothing was left running", file=sys.stderr)
        return 130
    if not args.tried and args.results == RESULTS:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page.text(ALL, read_all(RESULTS)), encoding="utf-8")
        _say(f"wrote docs/{PAGE.name}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(benchmark.NAME for benchmark in ALL))
    parser.add_argument("--quick", action="store_true", help="a few values only, and none is kept")
    parser.add_argument("--json", action="store_true", help="print results as JSON, raw values and all")
    parser.add_argument(
        "--only",
        default="",
        metavar="PART",
        help="of packing: a setting (shared), or one run (shared-2); of native: a problem; of dashboard: live, large; "
        "of cluster: empty, many",
    )
    parser.add_argument("--tabs", type=int, metavar="N", help="of tabs: so many, and nothing is kept")
    parser.add_argument(
        "--minutes", type=float, metavar="M", help="of tabs: they are open so long, and nothing is kept"
    )
    parser.add_argument("--resume", action="store_true", help="keep the results of packing and native that are there")
    parser.add_argument("--page", action="store_true", help="measure nothing: write the page from what is kept")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR", help="where results are kept")
    args = parser.parse_args()
    args.tried = args.quick or args.tabs is not None or args.minutes is not None
    for name in args.names:
        if name not in [benchmark.NAME for benchmark in ALL]:
            parser.error(f"there is no benchmark {name!r}")
    return args


def _measure(benchmark: Benchmark, args: argparse.Namespace) -> None:
    kept = frozenset(read_all(args.results)) if args.resume else frozenset()
    ask = Ask(quick=args.quick, only=args.only, tabs=args.tabs, minutes=args.minutes, kept=kept, say=_say)
    for result in benchmark.measure(ask):
        if not args.tried or args.results != RESULTS:
            write(result, args.results)
        print(as_json(result) if args.json else _brief(result), flush=True)


def _brief(result: Result) -> str:
    if "best" in result.series:
        return f"{result.name}: {result.series['best'][-1]:.10g} after {result.settings['seconds']:g} s"
    lines = [result.name]
    for key, values in result.series.items():
        found = summarize(values)
        spread = f"p10 {found.p10:.4g}, p90 {found.p90:.4g}, p99 {found.p99:.4g}"
        lines.append(f"  {key}: median {found.median:.4g}, {spread} ({found.count})")
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
