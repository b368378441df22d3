"""A program that is told what is left of the money ends its turn there, and its conversation can be gone on with."""

import pytest
from driven import Drive
from model_server import Asked, Step

from coral.fleet.events import Ending

pytestmark = pytest.mark.timeout(900)


def tireless(asked: Asked) -> Step:
    """One tool after the other, at a price, and never a last word."""
    return Step(say="And once more.", run=f"echo {len(asked.texts)} >> x.txt", usage=(20_000, 500, 0))


@pytest.mark.parametrize("program", ["claude"], indirect=True)
def test_a_turn_without_end_ends_at_the_ceiling(program: str, drive: Drive) -> None:
    server, desk = drive(program, tireless)
    desk.money = 0.3
    launch = desk.launch("Go on and on.")
    assert launch.leaves_nothing()
    first = launch.end()
    assert first.ending is Ending.CLEAN
    (cost,) = [event.usage.cost for event in first.signs if event.usage is not None]
    assert cost is not None
    asked = len(server.turns)
    # The model is asked no more once that is spent: what is over it is the last answer.
    assert 0.3 <= cost <= 0.3 + 1.01 * cost / asked
    assert asked >= 2
    desk.money = 0.0001
    second = desk.launch("And again.", first.session).end()
    assert (second.ending, second.session) == (Ending.CLEAN, first.session)
    assert len(server.turns) == asked + 1
