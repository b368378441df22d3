"""Who was alive when, and how that is drawn."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from coral.cli.ui.life import life_lines
from coral.reading.beat_spans import Life, LifeSpan, spans
from heartbeats.beat import Beat, Status

START = 1_900_000_000.0


def beat(at: float, status: Status = Status.RUNNING, ttl: float = 600.0) -> Beat:
    stamp = datetime.fromtimestamp(START + at, UTC).isoformat(timespec="milliseconds")
    return Beat(
        run="r", agent="a", launch=1, status=status, phase="", progress=None, message="", timestamp=stamp, ttl=ttl
    )


def found(*beats: Beat, until: float) -> list[tuple[str, float, float]]:
    return [(span.life.value, span.start - START, span.end - START) for span in spans(beats, START + until)]


@pytest.mark.parametrize(
    ("beats", "until", "expected"),
    [
        ((), 100, []),
        ((beat(0), beat(30), beat(60)), 100, [("alive", 0, 100)]),
        ((beat(0), beat(300)), 310, [("alive", 0, 60), ("idle", 60, 300), ("alive", 300, 310)]),
        ((beat(0),), 1000, [("alive", 0, 60), ("idle", 60, 600), ("dead", 600, 1000)]),
        (
            (beat(0), beat(20, Status.ERROR), beat(500)),
            520,
            [("alive", 0, 20), ("parked", 20, 500), ("alive", 500, 520)],
        ),
        ((beat(0, ttl=10),), 30, [("alive", 0, 10), ("dead", 10, 30)]),
        ((beat(50), beat(0)), 60, [("alive", 0, 60)]),
        # A job goes on, and a pulse ends: the launch is what it was.
        (
            (beat(0), replace(beat(10, Status.SUCCESS), launch=0), replace(beat(90), launch=0)),
            100,
            [("alive", 0, 60), ("idle", 60, 100)],
        ),
    ],
)
def test_a_life_has_no_gaps(beats: tuple[Beat, ...], until: float, expected: list[tuple[str, float, float]]) -> None:
    assert found(*beats, until=until) == expected


def test_a_time_that_is_none_is_left_out() -> None:
    broken = Beat(**{**{name: getattr(beat(0), name) for name in Beat.__slots__}, "timestamp": "yesterday"})
    assert found(broken, beat(0), until=10) == [("alive", 0, 10)]


def test_each_agent_is_a_line_and_a_short_death_is_seen() -> None:
    lives = {
        "agent-1": [LifeSpan(Life.ALIVE, 0, 500), LifeSpan(Life.DEAD, 500, 501), LifeSpan(Life.PARKED, 501, 1000)],
        "agent-10": [LifeSpan(Life.IDLE, 500, 1000)],
        "agent-11": [],
    }
    one, two, three, axis, legend = (line.plain for line in life_lines(lives, 1000, 1000, 30))
    assert one == "agent-1   " + "█" * 10 + "×" + "·" * 9
    assert two == "agent-10  " + " " * 10 + "▒" * 10
    assert three.strip() == "agent-11"
    assert axis.split() == ["16", "min", "ago", "now"]
    assert legend == "█ alive  ▒ idle  × dead  · parked"


def test_the_axis_of_a_run_that_is_over_does_not_end_now() -> None:
    *_, axis, _ = (line.plain for line in life_lines({"agent-1": [LifeSpan(Life.IDLE, 0, 600)]}, 600, 7200, 50))
    assert axis.split() == ["2", "h", "ago", "1", "h", "ago"]
