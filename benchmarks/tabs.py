"""Measures what open pages of the dashboard cost: the memory of its server, and whether they slow the supervisor.

Most tabs are connections that ask for what a page asks for; a few are pages in a real browser.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks import browsing, fleet, machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, arena, ms
from benchmarks.benchmark import Ask, Full
from benchmarks.dashboard import PAGES, POINT_TARGET
from benchmarks.dashboard_server import Server, StreamTab, serving, stream_tabs
from benchmarks.figure import Check, Target, check, median
from benchmarks.fleet import CPU, MEMORY, PACE, WINDOW
from benchmarks.interrupt import WHOLE
from benchmarks.results import Result

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAME = "tabs"
AGENTS, TABS, MINUTES, MINUTES_WITHOUT = 16, 20, 60.0, 5.0
QUICK_AGENTS, QUICK_TABS, QUICK_MINUTES = 4, 4, 0.5
SHOWN = ("fleet", "attempts", "heartbeats")  # by a browser
WITHOUT, WITH, AFTER = "without", "with", "after"
SERVER, POINT = "server", "point"
PARTS = {CPU: "% of a core", WHOLE: "ms from grader ended to SIGINT", MEMORY: "MB of the supervisor"}
SERVER_TARGET, SAME = Target(median=150, p99=150), Target(median=1.2)


@dataclass(frozen=True, slots=True)
class Size:
    agents: int
    tabs: int
    minutes: float  # with tabs
    without: float  # minutes, before and after

    def settings(self) -> dict[str, float]:
        shares = {"agents": self.agents, "tabs": self.tabs, "browser": len(SHOWN), "pace": PACE, "window": WINDOW}
        return shares | {"minutes": self.minutes, "minutes without": self.without}


FULL = Size(AGENTS, TABS, MINUTES, MINUTES_WITHOUT)


def measure(ask: Ask) -> Iterable[Result]:
    here, size = machine.here(), _size(ask)
    with arena() as place, browsing.chromium() as browser:
        ask.say(f"preparing {size.agents} agents")
        run = fleet.start(place, size.agents)
        ask.say(f"watching the supervisor for {size.without:g} minutes")
        series = _named(WITHOUT, fleet.watch(place, run, _windows(size.without)))
        with serving(place, run) as server:
            begin = server.memory()
            with _open_tabs(browser, server, size.tabs) as tabs:
                ask.say(f"watching it with {size.tabs} tabs for {size.minutes:g} minutes")
                series |= _watch_with(place, run, server, tabs, size)
            series[f"{SERVER}: {WITHOUT}"] = [begin]
        ask.say(f"watching it without them for {size.without:g} minutes")
        series |= _named(AFTER, fleet.watch(place, run, _windows(size.without)))
    yield Result(NAME, machine.today(), here, size.settings(), series)


def full() -> Mapping[str, Full]:
    series: dict[str, int | None] = {f"{SERVER}: {WITHOUT}": 1, f"{SERVER}: {WITH}": _windows(MINUTES), POINT: None}
    for when, minutes in ((WITHOUT, MINUTES_WITHOUT), (WITH, MINUTES), (AFTER, MINUTES_WITHOUT)):
        series |= {
            f"{when}: {CPU}": _windows(minutes),
            f"{when}: {MEMORY}": _windows(minutes),
            f"{when}: {WHOLE}": None,
        }
    return {NAME: Full(FULL.settings(), series)}


def checks(results: Mapping[str, Result]) -> list[Check]:
    series = results[NAME].series
    found = [
        check(f"the dashboard's server, {TABS} tabs", series[f"{SERVER}: {WITH}"], SERVER_TARGET, "MB", _WHY_MEMORY),
        check(f"a published attempt at the last of {TABS} tabs", series[POINT], POINT_TARGET, "ms", _WHY_LATE),
    ]
    for part, what in {CPU: "supervisor at work", WHOLE: "grade to interrupt"}.items():
        alone = median([*series[f"{WITHOUT}: {part}"], *series[f"{AFTER}: {part}"]])
        grown = [round(median(series[f"{WITH}: {part}"]) / alone, 3)]
        found.append(check(f"{what}, {TABS} tabs to none", grown, SAME, "times as much", _WHY_MORE))
    return found


def section(results: Mapping[str, Result]) -> list[str]:
    result = results[NAME]
    lines = ["## The dashboard, open in many tabs", "", _ABOUT, ""]
    rows = {WITHOUT: "before any tab", WITH: f"{TABS} tabs", AFTER: "after them"}
    for part, unit in PARTS.items():
        labels = {f"{when}: {part}": label for when, label in rows.items()}
        lines += [*table.head(unit, "the supervisor"), *table.rows(labels, result), ""]
    labels = {f"{SERVER}: {WITHOUT}": "before any tab", f"{SERVER}: {WITH}": f"{TABS} tabs"}
    lines += [*table.head("MB", "the dashboard's server"), *table.rows(labels, result), ""]
    lines += [
        *table.head("ms from its record to the last tab", "a published attempt"),
        table.row("", result.series[POINT]),
    ]
    return [*lines, "", table.origin(result)]


_ABOUT = f"""{AGENTS} agents submit in turn, one every {PACE:g} seconds. After {MINUTES_WITHOUT:g} minutes `coral ui` is
started and {TABS} tabs are open for {MINUTES:g} minutes: {len(SHOWN)} are pages in Chromium ({", ".join(SHOWN)}), the
others connections that read the live events and ask for the curve after each improvement, as a page does. Then they are
closed, and the supervisor is watched as long as before. Its share of a core and what it takes from a grade to the
interrupt are those of the sections above; the server's memory is its proportional share (PSS). A published attempt is
timed from the moment that its record has its name until the last of the connections has it. `--tabs N` and
`--minutes M` try other numbers; what they give is not kept."""
_WHY_MEMORY = "Look for what it keeps for each page, and for each attempt."
_WHY_LATE = "The server tells one page after the other; the rest is waiting for a core."
_WHY_MORE = "Server, browser, agents and supervisor share the cores; the supervisor itself is told of no page."


def _size(ask: Ask) -> Size:
    agents, tabs, minutes = (QUICK_AGENTS, QUICK_TABS, QUICK_MINUTES) if ask.quick else (AGENTS, TABS, MINUTES)
    tabs, minutes = ask.tabs or tabs, ask.minutes or minutes
    if tabs <= len(SHOWN):
        raise BenchmarkError(f"--tabs: more than {len(SHOWN)}, for so many are in a browser")
    return Size(agents, tabs, minutes, min(MINUTES_WITHOUT, minutes))


def _windows(minutes: float) -> int:
    return max(1, round(60 * minutes / WINDOW))


def _named(when: str, found: Mapping[str, Sequence[float]]) -> dict[str, Sequence[float]]:
    return {f"{when}: {part}": found[part] for part in (CPU, MEMORY, WHOLE)}


@contextmanager
def _open_tabs(browser: Browser, server: Server, count: int) -> Iterator[list[StreamTab]]:
    """Open the tabs, some of them in the browser; yield the others."""
    with ExitStack() as stack:
        for name in SHOWN:
            where, selector = PAGES[name]
            stack.enter_context(browsing.visit(browser, f"{server.address}#/{server.run}/{where}", selector))
        yield stack.enter_context(stream_tabs(server, count - len(SHOWN)))


def _watch_with(
    place: Arena, run: Started, server: Server, tabs: list[StreamTab], size: Size
) -> dict[str, Sequence[float]]:
    memory: list[float] = []
    found = fleet.watch(place, run, _windows(size.minutes), lambda: memory.append(round(server.memory(), 2)))
    series = _named(WITH, found)
    common = set.intersection(*(set(tab.points) for tab in tabs))
    if not common or any(tab.connections > 1 for tab in tabs):
        raise BenchmarkError(f"of the tabs {sum(tab.connections != 1 for tab in tabs)} lost their connection")
    last = {number: max(tab.points[number] for tab in tabs) for number in sorted(common)}
    points = [ms(at - run.record(number).stat().st_ctime_ns) for number, at in last.items()]
    return series | {f"{SERVER}: {WITH}": memory, POINT: points}
