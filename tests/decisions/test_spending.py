"""What agents spend, as transcripts: each token and each cent counts once, however often a figure is told."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from stage import QUIET_RULES, Stage

from coral.fleet import events as on
from coral.fleet.agent_state import Meter, Spent
from coral.fleet.events import Ending
from coral.fleet.members import Prices

PRICES = Prices(input=3.0, cached=0.5, output=15.0)


def used(
    stage: Stage, agent: str, input: int = 0, output: int = 0, money: float | None = None, **fields: object
) -> on.Used:
    figure = Spent(input=input, output=output, money=money, cached=int(str(fields.pop("cached", 0))))
    told = on.Used(agent=agent, launch=stage[agent].launch, figure=figure)
    return replace(told, **fields)  # type: ignore[arg-type]  # a launch or a session


def again(stage: Stage, clock: float) -> None:
    """End the launch of `ann`, and let its next one begin."""
    stage.at(clock, stage.exited("ann", Ending.INTERRUPTED))
    stage.until(clock + 100)


def total(stage: Stage) -> tuple[int, int, int, float | None]:
    spent = stage.fleet.run.spent
    return spent.input, spent.cached, spent.output, spent.money


def test_what_grows_within_a_launch_is_counted_by_what_is_new() -> None:
    stage = Stage(2)
    assert stage.at(2, used(stage, "ann", 10, 1, 0.25, cached=100)) == []
    stage.at(3, used(stage, "ann", 30, 5, 0.75, cached=400))
    stage.at(3, used(stage, "ben", 1000, 1))
    assert stage["ann"].spent == Spent(input=30, cached=400, output=5, money=0.75)
    assert stage["ben"].spent == Spent(input=1000, output=1)
    assert total(stage) == (1030, 400, 6, 0.75)
    assert stage["ann"].spent.tokens == 35
    assert stage["ann"].meter == Meter(launch=1, figure=Spent(input=30, cached=400, output=5, money=0.75))


def test_a_log_that_is_read_once_more_counts_once() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 10, 1, 0.25), used(stage, "ann", 30, 5, 0.75))
    before = stage.fleet
    stage.at(3, used(stage, "ann", 10, 1, 0.25), used(stage, "ann", 30, 5, 0.75))
    assert stage.fleet.run is before.run
    assert stage["ann"] is before.agents["ann"]
    stage.at(4, used(stage, "ann", 31, 5, 1.0))
    assert total(stage) == (31, 0, 5, 1.0)


def test_every_figure_has_a_highest_of_its_own() -> None:
    # Money is known from the second figure on; of a figure that is partly lower the higher part counts.
    stage = Stage()
    stage.at(2, used(stage, "ann", 10, 9, cached=4))
    assert total(stage) == (10, 4, 9, None)
    stage.at(3, used(stage, "ann", 12, 1, 0.5, cached=1))
    assert total(stage) == (12, 4, 9, 0.5)
    stage.at(4, used(stage, "ann", 1, 10, cached=2))
    assert total(stage) == (12, 4, 10, 0.5)
    stage.at(5, used(stage, "ann", 12, 10, 0.25, cached=5))
    assert total(stage) == (12, 5, 10, 0.5)
    assert stage["ann"].meter.figure == Spent(input=12, cached=5, output=10, money=0.5)


def test_a_figure_of_the_launch_begins_anew_with_each_launch() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 10, 1, 0.25))
    again(stage, 3)
    assert stage["ann"].launch == 2
    stage.at(103, used(stage, "ann", 15, 2, 0.5))
    assert total(stage) == (25, 0, 3, 0.75)
    stage = Stage()
    late = used(stage, "ann", 10, 1)
    again(stage, 3)
    stage.at(103, late, replace(late, agent="nobody", launch=2))
    assert total(stage) == (0, 0, 0, None)


def test_a_figure_of_the_conversation_goes_on_in_the_next_launch() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 10, 1, 0.25, session="s"))
    again(stage, 3)
    stage.at(103, used(stage, "ann", 15, 2, 0.5, session="s"))
    assert total(stage) == (15, 0, 2, 0.5)
    again(stage, 104)
    # The same figure in another launch is nothing new.
    stage.at(204, used(stage, "ann", 15, 2, 0.5, session="s"))
    assert total(stage) == (15, 0, 2, 0.5)
    assert stage["ann"].meter == Meter(launch=3, session="s", figure=Spent(input=15, output=2, money=0.5))
    # Another conversation begins at nothing, and so does what is counted since the launch.
    stage.at(205, used(stage, "ann", 3, 1, session="other"))
    assert total(stage) == (18, 0, 3, 0.5)
    stage.at(206, used(stage, "ann", 4, 1))
    assert total(stage) == (22, 0, 4, 0.5)


@pytest.mark.parametrize("figure", [(9, 20, 0.125), (9, 0, 0.125), (0, 0, 0.0)])
def test_a_conversation_whose_figure_has_fallen_as_a_whole_in_another_launch_began_anew(
    figure: tuple[int, int, float],
) -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 10, 1, 0.25, session="s"))
    again(stage, 3)
    read, written, money = figure
    stage.at(103, used(stage, "ann", read, written, money, session="s"))
    assert total(stage) == (10 + read, 0, 1 + written, 0.25 + money)
    stage.at(104, used(stage, "ann", read + 1, written, money, session="s"))
    assert total(stage) == (11 + read, 0, 1 + written, 0.25 + money)


@pytest.mark.parametrize(
    ("figure", "sums"),
    [
        # An answer that was cut off counts by an estimate, which the next launch no longer knows.
        ((10_000, 170, 0.5), (10_000, 0, 229, 0.5)),
        ((10_000, 300, 0.3), (10_000, 0, 300, 0.4)),
        ((8_000, 300, 0.5), (8_100, 0, 300, 0.5)),
    ],
)
def test_a_part_of_the_figure_that_falls_alone_counts_nothing_twice(
    figure: tuple[int, int, float], sums: tuple[object, ...]
) -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 8_100, 229, 0.4, session="s"))
    again(stage, 3)
    stage.at(103, used(stage, "ann", *figure, session="s"))
    assert total(stage) == sums


@pytest.mark.parametrize(
    ("before", "after", "cached", "sums"),
    [
        ((10, 1, 0.25), (10, 1, 0.25), 7, (10, 7, 1, 0.25)),  # equal figures have not fallen
        ((10, 1, 0.25), (12, 2, None), 0, (12, 0, 2, 0.25)),
        ((10, 1, None), (12, 2, None), 0, (12, 0, 2, None)),
        ((10, 1, 0.0), (12, 2, 0.0), 0, (12, 0, 2, None)),
    ],
    ids=["equal", "no longer told", "never told", "told as nothing"],
)
def test_money_that_is_not_told_or_stays_the_same_is_neither_lost_nor_fallen(
    before: tuple[int, int, float | None], after: tuple[int, int, float | None], cached: int, sums: tuple[object, ...]
) -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", *before, session="s"))
    again(stage, 3)
    stage.at(103, used(stage, "ann", *after, cached=cached, session="s"))
    assert total(stage) == sums


@pytest.mark.parametrize(
    ("before", "after", "anew"),
    [
        ((10, 5, None), (3, 1, None), True),
        ((10, 5, 0.0), (3, 1, 0.0), True),  # a program that knows no price
        ((10, 5, 0.5), (3, 1, None), True),
        ((10, 5, None), (3, 5, None), False),
        ((10, 5, None), (3, 6, None), False),
        ((10, 5, 0.5), (3, 1, 0.5), False),
        ((10, 5, 0.5), (10, 1, 0.4), False),
    ],
)
def test_a_conversation_began_anew_where_its_input_and_its_money_have_fallen_or_its_output_without_money(
    before: tuple[int, int, float | None], after: tuple[int, int, float | None], anew: bool
) -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", *before, session="s"))
    again(stage, 3)
    stage.at(103, used(stage, "ann", *after, session="s"))
    assert total(stage)[0] == 10 + (after[0] if anew else 0)


def test_tokens_without_a_price_cost_what_the_task_says_of_the_agent_s_program() -> None:
    stage = Stage(rules=replace(QUIET_RULES, prices={"ann": PRICES}))
    stage.at(2, used(stage, "ann", 1_000_000, 100_000, cached=2_000_000))
    assert total(stage)[3] == pytest.approx(3.0 + 1.5 + 1.0)
    stage.at(3, used(stage, "ann", 2_000_000, 100_000, cached=2_000_000))
    assert total(stage)[3] == pytest.approx(3.0 + 1.5 + 1.0 + 3.0)
    stage = Stage(2, rules=replace(QUIET_RULES, prices={"ann": PRICES, "ben": replace(PRICES, input=7.0)}))
    stage.at(2, used(stage, "ann", 1_000_000, 0))
    stage.at(3, used(stage, "ben", 1_000_000, 0))
    assert total(stage)[3] == pytest.approx(3.0 + 7.0)


def test_what_the_program_says_itself_goes_before_the_prices() -> None:
    stage = Stage(rules=replace(QUIET_RULES, prices={"ann": PRICES}))
    stage.at(2, used(stage, "ann", 1_000_000, 0, 0.125))
    assert total(stage)[3] == 0.125
    # But one that knows no price says that it costs nothing.
    stage.at(3, used(stage, "ann", 2_000_000, 0, 0.125))
    assert total(stage)[3] == 3.125


def test_a_cost_of_nothing_that_no_price_supports_is_not_known() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 1_000_000, 0, 0.0))
    assert total(stage) == (1_000_000, 0, 0, None)
    stage.at(3, used(stage, "ann", 2_000_000, 0, 0.5))
    assert total(stage)[3] == 0.5
    free = Stage(rules=replace(QUIET_RULES, prices={"ann": Prices(input=0.0, cached=0.0, output=0.0)}))
    free.at(2, used(free, "ann", 1_000_000, 0, 0.0))
    assert total(free)[3] == 0.0


def test_tokens_without_a_price_are_missing_in_the_money_until_their_cost_is_reported() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 10, 1, session="s"))
    assert (stage["ann"].meter.is_unpriced, stage["ann"].meter.is_money_partial) == (True, True)
    stage.at(3, used(stage, "ann", 10, 1, 0.5, session="s"))
    assert stage["ann"].meter == Meter(launch=1, session="s", figure=Spent(input=10, output=1, money=0.5))
    assert not stage["ann"].meter.is_money_partial
    stage.at(4, used(stage, "ann", 10, 2, 0.5, session="s"))
    again(stage, 5)
    stage.at(105, used(stage, "ann", 10, 2, 0.75, session="s"))
    assert not stage["ann"].meter.is_money_partial, "the conversation goes on"
    stage.at(106, used(stage, "ann", 10, 3, 0.75, session="s"))
    again(stage, 107)
    stage.at(207, used(stage, "ann", 1, 1, 0.25, session="t"))
    lost = Meter(launch=3, session="t", figure=Spent(input=1, output=1, money=0.25), is_money_lost=True)
    assert stage["ann"].meter == lost
    assert lost.is_money_partial


def test_tokens_whose_money_was_reported_before_are_in_it() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", money=0.5))
    stage.at(3, used(stage, "ann", 10, 0, 0.5))
    assert not stage["ann"].meter.is_money_partial
    stage.at(4, used(stage, "ann", 20, 0, 0.5))
    assert stage["ann"].meter.is_money_partial
    stage.at(5, used(stage, "ann", 20, 0, 0.75))
    stage.at(6, used(stage, "ann", 30, 0, 0.75))
    assert stage["ann"].meter.is_money_partial, "the last money paid for the tokens before it"


def test_prices_from_a_resume_on_are_not_those_of_earlier_tokens() -> None:
    stage = Stage()
    stage.at(2, used(stage, "ann", 1_000_000, session="s"))
    stage.rules = replace(QUIET_RULES, prices={"ann": PRICES})
    stage.at(3, used(stage, "ann", 2_000_000, session="s"))
    assert (total(stage)[3], stage["ann"].meter.is_money_partial) == (3.0, True)
    priced = Stage(rules=replace(QUIET_RULES, prices={"ann": PRICES}))
    priced.at(2, used(priced, "ann", 1_000_000))
    assert not priced["ann"].meter.is_money_partial


ALONE, MORE_ALONE, TOKENS = (0, 3.0), (0, 4.0), (1_000_000, None)


@pytest.mark.parametrize(
    ("figures", "money"),
    [
        ([ALONE, (1_000_000, 3.0)], 3.0),
        ([ALONE, MORE_ALONE, (1_000_000, 4.0)], 4.0),
        ([(0, 0.125), (1_000_000, 0.125)], 0.125),  # money that is reported goes before the prices
        ([ALONE, TOKENS, (2_000_000, 3.0)], 6.0),
        ([ALONE, (1_000_000, 3.0), (1_000_000, 4.0), (2_000_000, 4.0)], 4.0),
        ([ALONE, (1_000_000, 4.0), (2_000_000, 4.0)], 7.0),
        ([TOKENS, (1_000_000, 3.0)], 3.0),
        ([TOKENS, (1_000_000, 4.0), (2_000_000, 4.0)], 7.0),
        ([TOKENS, (2_000_000, 7.5)], 7.5),
        ([TOKENS, (1_000_000, 1.0), (1_000_000, 2.0), (1_000_000, 4.0)], 4.0),
        ([TOKENS, (1_000_000, 1.0), (2_000_000, 1.0)], 6.0),
    ],
)
@pytest.mark.parametrize("in_one_launch", [True, False])
def test_money_and_the_tokens_that_it_paid_for_count_once_in_whatever_order_they_are_reported(
    figures: list[tuple[int, float | None]], money: float, in_one_launch: bool
) -> None:
    stage, clock = Stage(rules=replace(QUIET_RULES, prices={"ann": PRICES})), 2
    for read, reported in figures:
        if not in_one_launch:
            again(stage, clock)
            clock += 101
        stage.at(clock, *[used(stage, "ann", read, 0, reported, session="s")] * 2)
        clock += 1
    assert total(stage) == (figures[-1][0], 0, 0, money)


def test_an_estimate_is_not_set_against_the_money_of_another_launch_or_conversation() -> None:
    stage = Stage(rules=replace(QUIET_RULES, prices={"ann": PRICES}))
    stage.at(2, used(stage, "ann", 1_000_000, 0))
    again(stage, 3)
    stage.at(103, used(stage, "ann", 0, 0, 3.0))
    again(stage, 104)
    stage.at(204, used(stage, "ann", 1_000_000, 0, 0.0))
    assert total(stage)[3] == 9.0


def test_a_log_in_which_money_came_before_its_tokens_counts_once_when_it_is_read_again() -> None:
    stage = Stage(rules=replace(QUIET_RULES, prices={"ann": PRICES}))
    told = [used(stage, "ann", 0, 0, 3.0), used(stage, "ann", 0, 0, 4.0), used(stage, "ann", 1_000_000, 0, 4.0)]
    stage.at(2, *told[:2], *told, *told)
    assert total(stage) == (1_000_000, 0, 0, 4.0)


@given(
    launches=st.lists(st.lists(st.tuples(*[st.integers(0, 50)] * 3), min_size=1, max_size=5), min_size=1, max_size=4),
    whole=st.booleans(),
    reread=st.lists(st.integers(0, 5), max_size=20),
)
def test_over_random_launches_and_rereadings_all_is_counted_once(
    launches: list[list[tuple[int, int, int]]], whole: bool, reread: list[int]
) -> None:
    """A supervisor that dies reads the log of the launch again from its beginning, as often as it happens."""
    stage, clock, deaths = Stage(), 1.0, list(reread)
    session, sums = "s" if whole else "", [0, 0, 0]
    start = [0, 0, 0]
    for steps in launches:
        figures = []
        for step in steps:
            sums = [a + b for a, b in zip(sums, step, strict=True)]
            read, cached, written = (a - b for a, b in zip(sums, start, strict=True))
            figures.append(used(stage, "ann", read, written, float(sum(sums) - sum(start)), cached=cached,
                                session=session))  # fmt: skip
            stage.at(clock, figures[-1])
            if deaths:
                stage.at(clock, *figures[: deaths.pop()])
            assert total(stage) == (*sums, float(sum(sums)) or None)
        again(stage, clock + 1)
        clock += 200
        start = start if whole else list(sums)
