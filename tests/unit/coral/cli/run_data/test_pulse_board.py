"""Which pulses are alive: by the watcher's clock, and each piece of work once."""

import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from coral.cli.run_data.pulse_board import MOST, PulseBoard
from coral.cli.ui.pulses import pulse_line, pulses_table
from heartbeats.beat import Beat, Status


class Given:
    """A source that gives what a test puts in."""

    name = "train.beats"

    def __init__(self) -> None:
        self.beats: list[Beat] = []
        self.cancelled: list[str] = []

    def new(self) -> Iterator[Beat]:
        beats, self.beats = self.beats, []
        yield from beats

    def cancel(self, session: str) -> None:
        if session == "gone":
            raise OSError("it is not connected")
        self.cancelled.append(session)

    def close(self) -> None:
        """Nothing is open."""


def beat(
    session: str, status: Status = Status.RUNNING, *, task: str = "train", ago: float = 0.0, **more: object
) -> Beat:
    stamp = (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(timespec="milliseconds")
    given = {"phase": "", "progress": None, "message": "", **more}
    return Beat(
        run="",
        agent="",
        launch=1,
        status=status,
        timestamp=stamp,
        ttl=60.0,
        session=session,
        task=task,
        **given,  # type: ignore[arg-type]
    )


@pytest.fixture
def given() -> Given:
    return Given()


@pytest.fixture
def board(given: Given) -> PulseBoard:
    return PulseBoard([given])


def test_silence_beyond_the_ttl_is_death_until_the_next_beat(board: PulseBoard, given: Given) -> None:
    given.beats = [beat("a")]
    board.update(100.0)
    assert board.states(159.9) == ["running"]
    assert (board.states(160.1), board.all_ended(160.1)) == (["dead"], True)
    given.beats = [beat("a")]
    board.update(200.0)
    assert (board.states(200.0), board.all_ended(200.0)) == (["running"], False)


def test_at_the_first_look_a_file_holds_old_beats_and_later_no_clock_but_ours_counts(
    board: PulseBoard, given: Given
) -> None:
    given.beats = [beat("a", ago=3600), beat("b", ago=3600, task="other")]
    board.update(0.0)
    assert board.states(0.0) == ["dead", "dead"]
    given.beats = [beat("a", ago=3600)]
    board.update(1.0)
    assert board.states(60.0) == ["running", "dead"]


def test_what_is_started_again_takes_the_place_of_the_dead_and_not_of_the_living(
    board: PulseBoard, given: Given
) -> None:
    given.beats = [beat("a")]
    board.update(0.0)
    given.beats = [beat("b")]
    board.update(10.0)
    assert len(board.pulses) == 2
    given.beats = [beat("c")]
    board.update(65.0)  # the first is dead by now
    assert [pulse.beat.session for pulse in board.pulses.values()] == ["b", "c"]
    given.beats = [beat("c", Status.ERROR), beat("d", task="other")]
    board.update(66.0)
    assert board.states(66.0) == ["running", "error", "running"]


def test_an_end_is_final(board: PulseBoard, given: Given) -> None:
    given.beats = [beat("a", Status.CANCELLED, ago=1.0), beat("a", ago=1.0), beat("a", ago=2.0)]
    given.beats[1] = replace(given.beats[1], timestamp=given.beats[0].timestamp)
    board.update(0.0)
    assert board.states(0.0) == ["cancelled"]


def test_the_supervisor_of_a_resumed_run_lives_again(board: PulseBoard, given: Given) -> None:
    given.beats = [beat("supervisor", Status.SUCCESS, ago=10.0)]
    board.update(0.0)
    assert board.all_ended(0.0)
    given.beats = [beat("supervisor", ago=1.0)]
    assert [pulse.beat.status for pulse in board.update(1.0)] == ["running"]
    assert board.states(1.0) == ["running"]


def test_files_of_the_same_name_are_not_mixed(given: Given) -> None:
    other = Given()
    board = PulseBoard([given, other])
    given.beats, other.beats = [beat("supervisor", Status.SUCCESS)], [beat("supervisor")]
    board.update(0.0)
    assert board.states(0.0) == ["success", "running"]


def test_no_flood_of_sessions_is_kept(board: PulseBoard, given: Given) -> None:
    given.beats = [beat(f"s{number}", Status.SUCCESS, task=f"t{number}") for number in range(MOST + 50)]
    board.update(0.0)
    assert len(board.pulses) <= MOST


def test_what_is_left_is_estimated_from_the_pace(board: PulseBoard, given: Given) -> None:
    given.beats = [beat("a", progress=0.1)]
    board.update(0.0)
    assert next(board.data(0.0))["left"] is None
    given.beats = [beat("a", progress=0.3, message="on")]
    board.update(20.0)
    assert next(board.data(20.0))["left"] == pytest.approx(70.0, abs=1.0)


def test_a_change_is_told_once(board: PulseBoard, given: Given) -> None:
    given.beats = [beat("a", phase="load"), beat("a", phase="load"), beat("a", phase="fold"), beat("a", Status.SUCCESS)]
    told = [pulse_line(pulse, 0.0).plain for pulse in board.update(0.0)]
    assert told == ["train running - load", "train running - fold", "train success"]


def test_one_that_is_cancelled_is_shown_so_and_one_that_is_gone_says_why(board: PulseBoard, given: Given) -> None:
    given.beats = [beat("a"), beat("gone", task="other")]
    board.update(0.0)
    first, second = board.pulses.values()
    assert (board.cancel(first), given.cancelled) == ("", ["a"])
    assert board.cancel(second) == "cannot cancel other: it is not connected"
    assert pulse_line(first, 0.0).plain == "train stopping"


def test_a_board_fits_its_screen(board: PulseBoard, given: Given) -> None:
    given.beats = [beat(f"s{number}", task=f"work {number}", progress=0.5, message="m" * 300) for number in range(40)]
    board.update(0.0)
    out = Console(width=80, height=12, file=io.StringIO())
    with out.capture() as shown:
        out.print(pulses_table(board, 0.0, out, 30, "keys"))
    lines = shown.get().splitlines()
    assert len(lines) <= 12
    assert all(len(line) <= 80 for line in lines)
    assert any(line.startswith("›") and "work 30" in line and "50%" in line for line in lines)
    assert lines[-2:] == ["and 31 more", "keys"]
