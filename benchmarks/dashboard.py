"""Measures how soon the dashboard shows a page, and a published attempt, in a real browser on the same machine.

The runs are real and live: a native fleet that works, and a fleet of 500 agents after 100,000 attempts.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attempts.record import Kind
from attempts.store import Store
from benchmarks import browsing, fleet, history, looking, machine, table
from benchmarks.arena import Arena, BenchmarkError, Started, arena, ms, wait_until
from benchmarks.benchmark import Ask, Full
from benchmarks.dashboard_server import Server, serving
from benchmarks.figure import Check, Target, check
from benchmarks.results import Result
from coral.reading.timeline import PUBLISHED, Timeline, end_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAME = "dashboard"
TASK = Path(__file__).parent.parent / "examples" / "circle_packing"
SECONDS = 0.5  # that a native agent searches before it submits
LIVE, LARGE, POINT = "live", "large", "point"


@dataclass(frozen=True, slots=True)
class Size:
    native: int  # agents of the native fleet
    agents: int  # of the large one
    attempts: int
    notes: int
    visits: int  # values for each page
    points: int  # values for attempts that were published


FULL, QUICK = Size(2, 500, 100_000, 200, 7, 100), Size(2, 4, 1_000, 20, 2, 10)
SETTINGS: dict[str, dict[str, float]] = {
    LIVE: {"agents": FULL.native, "seconds": SECONDS},
    LARGE: {"agents": FULL.agents, "attempts": FULL.attempts, "notes": FULL.notes, "pace": fleet.PACE},
}
ROWS = {
    LIVE: f"{FULL.native} native agents at work",
    LARGE: f"{FULL.agents} agents, {FULL.attempts:,} attempts",
}
# The address of each page, and its content: a selector of an element that only an answer of the server brings.
PAGES = {
    "fleet": ("fleet", "tr[data-agent]"),
    "attempts": ("attempts", "tr[data-row]"),
    "one attempt": ("attempts/1", "dl.pairs"),
    "lineage": ("attempts/lineage", "a.node"),
    "metrics": ("attempts/metrics", ".chart canvas, p.quiet:not([role])"),
    "knowledge": ("knowledge", "article.card, td.title"),
    "heartbeats": ("heartbeats/agent-1", ".lane svg"),
    "transcripts": ("transcripts/agent-1", "ol.conversation"),
    "score over time": ("fleet", ".chart canvas"),
    "time": ("time", "main dl.tiles"),
    "runs": ("runs", "tbody th"),
    "steering": ("steering", "main tbody th"),
}
PAGE_TARGET, POINT_TARGET = Target(median=1000, p99=1000), Target(median=150, p99=150)


def measure(ask: Ask) -> Iterable[Result]:
    size = QUICK if ask.quick else FULL
    with browsing.chromium() as browser:
        for name, start in {LIVE: _native_fleet, LARGE: _large_fleet}.items():
            if ask.only not in ("", name):
                continue
            here = machine.here()
            ask.say(f"preparing the {name} fleet")
            with start(size) as (place, run), serving(place, run) as server:
                ask.say(f"opening its pages {size.visits} times")
                series = _pages(browser, server, size.visits)
                ask.say(f"waiting for {size.points} attempts")
                series[POINT] = _points(browser, server, run, size.points)
            yield Result(f"{NAME}-{name}", machine.today(), here, SETTINGS[name], series)


def full() -> Mapping[str, Full]:
    series = {key(page): FULL.visits for page in PAGES for key in (_moved, _opened)} | {POINT: FULL.points}
    return {f"{NAME}-{name}": Full(SETTINGS[name], series) for name in ROWS}


def checks(results: Mapping[str, Result]) -> list[Check]:
    found = []
    for label, result in _there(results).items():
        values = [value for page in PAGES for value in result.series[_opened(page)]]
        found.append(check(f"dashboard, first content of a page, {label}", values, PAGE_TARGET, "ms", _WHY_PAGE))
        what = f"dashboard, a published attempt on the page, {label}"
        found.append(check(what, result.series[POINT], POINT_TARGET, "ms", _WHY_POINT))
    return found


def section(results: Mapping[str, Result]) -> list[str]:
    lines = ["## The dashboard in a browser", "", _ABOUT, ""]
    for label, result in _there(results).items():
        for key, how in ((_opened, "in a new browser"), (_moved, "from another page")):
            lines += table.head("ms to the first content", f"{how}: {label}")
            lines += [*table.rows({key(page): page for page in PAGES}, result), ""]
        lines += table.head("ms from its record to its point", f"a published attempt: {label}")
        lines += [*table.rows({POINT: "on the curve"}, result), "", table.origin(result, NAME), ""]
    return lines[:-1]


def _there(results: Mapping[str, Result]) -> dict[str, Result]:
    return {label: results[f"{NAME}-{name}"] for name, label in ROWS.items() if f"{NAME}-{name}" in results}


_ABOUT = f"""`coral ui` and Debian's Chromium on the machine that also runs the fleet. The first content of a page is
in the first frame that shows what an answer of the server alone brings (a row, a chart, an entry). A new browser has a
profile of its own and loads all of the application meanwhile; its time begins with the navigation. The native agents
compute without a pause, {SECONDS:g} s for each attempt. Of the large run all but the latest attempts are made up; its
agents submit every {fleet.PACE:g} s. A published attempt is timed from the moment that its record has its name to the
frame that shows its point on the curve of an open page."""
_WHY_PAGE = "The tables show which page; what a new browser takes longer than a move are the files of the application."
_WHY_POINT = "The server looks every 40 ms; the rest is reading, the browser, and waiting for a core."


def _opened(page: str) -> str:
    return f"opened: {page}"


def _moved(page: str) -> str:
    return f"moved to: {page}"


@contextmanager
def _native_fleet(size: Size) -> Iterator[tuple[Arena, Started]]:
    """Start a native fleet, and wait until the run has some attempts and a note."""
    with arena() as place:
        options = (f"agents.count={size.native}", f"agents.options={{seconds: {SECONDS:g}}}", "budget.hours=2")
        run = place.start(TASK, "agents.runtime=native", *options)
        notes = run.layout.shared / "notes"
        wait_until(lambda: len(run.attempts()) >= 10 and any(notes.glob("*.md")), 120, "ten attempts and a note")
        yield place, run


@contextmanager
def _large_fleet(size: Size) -> Iterator[tuple[Arena, Started]]:
    with arena() as place:
        run = fleet.start(place, size.agents)
        place.stop(run)
        history.fill(run, size.attempts, size.agents)
        history.index(run)
        looking.write_notes(run, size.notes)
        os.sync()  # a disk that still writes what was made up would be measured
        fleet.resume(place, run, size.agents)
        yield place, run


def _pages(browser: Browser, server: Server, visits: int) -> dict[str, list[float]]:
    """Measure how soon each page is shown, in milliseconds, `visits` times. The pages take turns, so that what slows
    the machine for a while slows all of them."""
    series: dict[str, list[float]] = {}
    base = f"#/{server.run}/"
    with browsing.visit(browser, server.address) as page:
        for _ in range(visits):
            for name, (where, selector) in PAGES.items():
                took = browsing.content_after_move(page, base + where, selector)
                series.setdefault(_moved(name), []).append(round(took, 1))
    for _ in range(visits):
        for name, (where, selector) in PAGES.items():
            took = browsing.first_content(browser, f"{server.address}{base}{where}", selector)
            series.setdefault(_opened(name), []).append(round(took, 1))
    return series


def _points(browser: Browser, server: Server, run: Started, count: int) -> list[float]:
    """Measure, in milliseconds, from the moment that the record of an attempt has its name to its point on the
    screen."""
    with browsing.watched_curve(browser, server.address) as page:
        clocks = _published(run, count)
        what = f"the points of {count} attempts"
        wait_until(lambda: browsing.drawn(page).keys() >= set(clocks.values()), 30, what)
        drawn = browsing.drawn(page)
    # A rename changes the ctime of the file, and nothing does after it.
    return [round(drawn[clock] - ms(run.record(number).stat().st_ctime_ns), 1) for number, clock in clocks.items()]


def _published(run: Started, count: int) -> dict[int, float]:
    """Wait for the next `count` attempts that are points of the curve; return the time of each on the run's clock."""
    clocks: dict[int, float] = {}
    timeline, store = Timeline(run.layout, end_of(run.layout, 0)), Store(run.layout.attempts)
    deadline = time.monotonic() + 60 + 10 * count
    while len(clocks) < count:
        if time.monotonic() > deadline:
            raise BenchmarkError(f"only {len(clocks)} attempts were published")
        time.sleep(0.2)
        for line in timeline.new():
            number, clock = line.integer("attempt"), line.number("clock")
            if line.text("type") != PUBLISHED or number is None or clock is None:
                continue
            if store.read(number).kind in (Kind.REAL, Kind.TUNE):
                clocks[number] = clock
    return dict(list(clocks.items())[:count])
