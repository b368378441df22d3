"""The tables of docs/trust.md: each row is tried, and each attack is told of."""

from pathlib import Path

import pytest
from agent_attacks import ATTACKS, LATE
from candidate_attacks import BEHIND, COMMAND, ELSEWHERE, FUNCTION, SPIED
from trust import LEVELS, Who, expected, row_of, tables

TESTS = Path(__file__).parents[1]
TRIED = {
    Who.AGENT: [attack.row for attack in (ATTACKS | LATE).values()],
    Who.GRADED: [attack.row for attack in (*FUNCTION.values(), *COMMAND.values())],
    Who.BEHIND: [*(attack.row for attack in BEHIND.values()), *SPIED.values()],
}


@pytest.mark.parametrize("who", Who)
def test_each_row_of_the_page_is_tried_and_each_attack_has_a_row(who: Who) -> None:
    elsewhere = [row for by, row in ELSEWHERE if by is who]
    assert {row_of(who, row) for row in (*TRIED[who], *elsewhere)} == tables()[who].keys()


@pytest.mark.parametrize("who", Who)
def test_each_cell_says_what_comes_of_it_in_one_of_the_words(who: Who) -> None:
    for row, cells in tables()[who].items():
        assert len(cells) == len(LEVELS[who]), row
        for level in LEVELS[who]:
            expected(who, row, level)  # ValueError for another word


def test_what_is_shown_elsewhere_is_shown_there() -> None:
    for place in ELSEWHERE.values():
        path, _, test = place.partition("::")
        assert f"def {test}(" in (TESTS / path).read_text()
