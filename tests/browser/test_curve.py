"""The curve of an open page draws an attempt as soon as it is told of it."""

from pathlib import Path

from dashboard import serving
from playwright.sync_api import Browser
from real_runs import wait_until
from sample import attempt, make_run, write_events, write_status

from attempts.store import Store
from benchmarks import browsing

# After the page's own handler of a point: whether the curve had it in the next frame that was painted.
SEEN = """
window.seen = [];
EventSource.prototype.addEventListener = function (kind, handler) {
  EventTarget.prototype.addEventListener.call(this, kind, (message) => {
    handler(message);
    const look = () => window.seen.push(window.drawn.has(JSON.parse(message.data).at));
    if (kind === "point") requestAnimationFrame(() => setTimeout(look));  // after the next frame
  });
};
"""


def test_a_point_is_drawn_before_the_page_is_painted(tmp_path: Path, browser: Browser) -> None:
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    with serving(layout) as served, browsing.watched_curve(browser, served.address, SEEN) as page:
        for number in range(5, 11):
            Store(layout.attempts).publish(attempt(number, 1.5))
            write_events(layout, {"type": "published", "attempt": number, "clock": 600.0 + number, "text": "arrived"})
            wait_until(lambda found=number - 4: page.evaluate("window.seen.length") == found, what="the point")
        # A busy machine may paint a frame between the two at times; an effect after painting is late every time.
        assert sum(page.evaluate("window.seen")) >= 4
