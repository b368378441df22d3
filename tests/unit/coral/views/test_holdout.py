"""What a hold-out contradicts: by data, and in words that name what was measured."""

import pytest

from attempts.record import Direction
from coral.views.holdout import Compared, Divergence, HeldOut, compare, divergence_text


def compared(direction: Direction, *rows: tuple[float, float | None]) -> list[Compared]:
    held = [
        HeldOut(number, score, held, "no data" if held is None else "") for number, (score, held) in enumerate(rows)
    ]
    return compare(held, direction)


def found(direction: Direction, *rows: tuple[float, float | None]) -> list[tuple[Divergence | None, int | None]]:
    return [(one.divergence, one.by) for one in compared(direction, *rows)]


@pytest.mark.parametrize(("direction", "sign"), [(Direction.MAXIMIZE, 1.0), (Direction.MINIMIZE, -1.0)])
def test_a_gain_that_is_none_on_the_hold_out_and_one_that_an_earlier_attempt_exceeds(
    direction: Direction, sign: float
) -> None:
    rows = [(0.0, 5.0), (1.0, 7.0), (2.0, 6.0), (3.0, 5.0), (4.0, 4.0), (5.0, 8.0)]
    assert found(direction, *((sign * score, sign * held) for score, held in rows)) == [
        (None, None),
        (None, None),
        (Divergence.OVERTAKEN, 1),
        (Divergence.NO_GAIN, None),
        (Divergence.NO_GAIN, None),
        (None, None),
    ]


def test_what_is_not_better_by_its_score_need_not_be_on_the_hold_out() -> None:
    assert found(Direction.MAXIMIZE, (0.0, 5.0), (2.0, 7.0), (0.0, 5.0), (2.0, 6.0), (1.0, 6.5)) == [(None, None)] * 5


def test_what_has_no_score_there_is_told_and_nothing_is_compared_with_such_a_seed() -> None:
    assert found(Direction.MAXIMIZE, (0.0, None), (1.0, None), (2.0, 1.0)) == [
        (Divergence.FAILED, None),
        (Divergence.FAILED, None),
        (None, None),
    ]
    assert found(Direction.MAXIMIZE, (0.0, 1.0), (1.0, None), (2.0, 3.0))[2] == (None, None)


def test_it_is_said_in_words() -> None:
    rows = compared(Direction.MAXIMIZE, (0.0, 5.0), (1.0, 7.0), (2.0, 6.0), (3.0, 5.0), (4.0, None))
    assert [divergence_text(one) for one in rows] == [
        "",
        "",
        "#1 is better on the hold-out",
        "no gain over the seed on the hold-out",
        "no score on the hold-out: no data",
    ]
