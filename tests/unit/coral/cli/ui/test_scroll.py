"""What one reads stays where it is, and every row can be reached."""

from hypothesis import given, strategies as st

from coral.cli.ui.scroll import Position, Scroll


def rows(first: int, count: int) -> list[Position]:
    return [(number, 0) for number in range(first, first + count)]


def test_the_newest_are_shown_until_one_scrolls() -> None:
    scroll = Scroll()
    assert scroll.window(rows(0, 5), 10) == (0, 5)
    assert scroll.window(rows(0, 25), 10) == (15, 25)


def test_what_one_reads_does_not_move_when_more_come_or_the_oldest_go() -> None:
    scroll = Scroll()
    scroll.window(rows(0, 100), 10)
    scroll.page(-1)
    assert scroll.window(rows(0, 100), 10) == (83, 92)  # a row tells of eight that are newer
    assert scroll.window(rows(0, 150), 10) == (83, 92)
    assert scroll.window(rows(50, 100), 10) == (33, 42)
    assert scroll.window(rows(100, 100), 10) == (0, 9)  # they are no longer kept
    scroll.to_newest()
    assert scroll.window(rows(100, 100), 10) == (90, 100)


def test_the_oldest_and_back() -> None:
    scroll = Scroll()
    scroll.window(rows(0, 100), 10)
    scroll.to_oldest()
    assert scroll.window(rows(0, 100), 10) == (0, 9)
    for _ in range(30):
        scroll.page(1)
    assert scroll.window(rows(0, 100), 10) == (90, 100)
    assert scroll.keep is None


def test_there_is_nothing_to_scroll_where_all_is_shown() -> None:
    scroll = Scroll()
    scroll.page(-1)
    scroll.window(rows(0, 10), 10)
    scroll.page(-1)
    scroll.to_oldest()
    assert (scroll.keep, scroll.window(rows(0, 10), 10)) == (None, (0, 10))


@given(count=st.integers(0, 60), height=st.integers(1, 12))
def test_page_by_page_every_row_is_seen(count: int, height: int) -> None:
    for step in (-1, 1):
        scroll, seen = Scroll(), set[int]()
        scroll.window(rows(0, count), height)
        if step > 0:
            scroll.to_oldest()
        for _ in range(count + 1):
            first, end = scroll.window(rows(0, count), height)
            assert end - first <= height
            seen |= set(range(first, end))
            scroll.page(step)
        assert seen == set(range(count))
