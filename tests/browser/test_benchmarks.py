"""The benchmarks of the dashboard read their times in a real page."""

import time
from pathlib import Path

import psutil
import pytest
from dashboard import serving
from playwright.sync_api import Browser
from real_runs import wait_until
from sample import attempt, make_run, write_events, write_status

from attempts.store import Store
from benchmarks import browsing
from benchmarks.arena import BenchmarkError
from benchmarks.dashboard_server import Server, stream_tabs


def test_pages_and_points_are_timed(tmp_path: Path, browser: Browser) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    base = f"#/{layout.root.name}/"
    with serving(layout) as served:
        began = time.monotonic()
        took = browsing.first_content(browser, f"{served.address}{base}attempts", "tr[data-row]")
        assert 0 < took < 1000 * (time.monotonic() - began)
        with browsing.visit(browser, served.address) as page:
            assert browsing.content_after_move(page, f"{base}attempts/metrics", "p.quiet:not([role])") > 0
            assert browsing.content_after_move(page, f"{base}attempts/4", "dl.pairs") > 0
            page.close()
            with pytest.raises(BenchmarkError, match="a page failed"):
                browsing.content_after_move(page, f"{base}fleet", "h2")
        server = Server(psutil.Process(served.process.pid), layout.root.name, served.address)
        assert 5 < server.memory() < 500
        with browsing.watched_curve(browser, served.address) as page, stream_tabs(server, 2) as tabs:
            wait_until(lambda: all(tab.connections for tab in tabs), what="the connections of the tabs")
            published = time.time()
            Store(layout.attempts).publish(attempt(5, 2.5))
            write_events(layout, {"type": "published", "attempt": 5, "clock": 601.5, "text": "arrived"})
            wait_until(lambda: 601.5 in browsing.drawn(page), what="its point on the screen")
            wait_until(lambda: all(5 in tab.points for tab in tabs), what="its point at the tabs")
            assert published <= browsing.drawn(page)[601.5] / 1e3 <= time.time()
            assert all(published <= tab.points[5] / 1e9 <= time.time() for tab in tabs)
