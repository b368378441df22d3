"""The timeline as a whole: what is counted in it, and that no line of it can cost much."""

from sample import write_events

from coral.reading import timeline
from coral.reading.timeline import PublishedClocks, Timeline, end_of, events, read_figures
from workspace.layout import Layout


def published(number: int, clock: float) -> dict[str, object]:
    return {"clock": clock, "type": "published", "agent": "agent-1", "text": "x", "attempt": number}


def test_what_it_tells_of_clocks_and_heartbeats(layout: Layout) -> None:
    both = [{"name": "reflect", "id": "h1", "attempt": 1}, {"name": "redirect", "id": "h2", "attempt": 1}]
    write_events(layout, published(1, 5.0), {"type": "heartbeat", "messages": both}, published(1, 9.0))
    write_events(
        layout, {"type": "withdrawn", "messages": both[1:]}, {"type": "skipped", "messages": [{"name": "checkpoint"}]}
    )
    write_events(layout, {"type": "interrupted", "messages": both})
    found = read_figures(layout)
    assert found.clocks == {1: 5.0}, "published once"
    assert found.received == {"reflect": 1, "redirect": 1}
    assert found.withdrawn == {"redirect": 1}
    assert found.skipped == {"checkpoint": 1}
    assert found.heartbeats == ["redirect", "reflect", "checkpoint"]


def test_a_line_that_mentions_a_type_is_not_of_it(layout: Layout) -> None:
    write_events(layout, {"type": "alert", "text": '"type": "published"'}, published(1, 5.0))
    assert [event.text("type") for event in events(layout, "published")] == ["published"]


def test_a_huge_line_is_passed_over(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(timeline, "LONGEST", 1000)
    monkeypatch.setattr(timeline, "AT_ONCE", 4000)
    write_events(layout, published(1, 5.0), {**published(2, 6.0), "text": "x" * 10_000}, published(3, 7.0))
    assert set(read_figures(layout).clocks) == {1, 3}
    follower, found = Timeline(layout), list[int | None]()
    for _ in range(8):
        found += [event.integer("attempt") for event in follower.new()]
    assert found == [1, 3]


def test_the_end_of_it(layout: Layout) -> None:
    write_events(layout, published(1, 5.0), published(2, 6.0))
    size = layout.events.stat().st_size
    assert end_of(layout, 10_000) == 0
    follower = Timeline(layout, end_of(layout, size // 2 + 5))
    assert [event.integer("attempt") for event in follower.new()] == [2]
    layout.events.unlink()
    assert end_of(layout, 10) == 0
    assert read_figures(layout).clocks == {}


def test_the_clocks_are_read_on_from_where_they_were_read(layout: Layout, monkeypatch) -> None:
    clocks = PublishedClocks(layout)
    clocks.update()
    assert clocks.of(1) is None
    write_events(layout, published(2, 6.0), published(1, 7.0))
    clocks.update()
    monkeypatch.setattr(timeline, "LONGEST", 1000)
    write_events(layout, published(2, 9.0), {**published(3, 8.0), "text": "x" * 10_000}, published(10**12, 8.0))
    with layout.events.open("a") as file:
        file.write('{"type": "published", "attempt": 4, ')
    clocks.update()
    assert [clocks.of(number) for number in range(-1, 5)] == [None, None, 7.0, 6.0, None, None]
    with layout.events.open("a") as file:
        file.write('"clock": 9.5}\n')
    clocks.update()
    assert clocks.of(4) == 9.5
    assert clocks.of(10**12) is None
    layout.events.write_text("")
    write_events(layout, published(5, 11.0))
    clocks.update()
    assert (clocks.of(2), clocks.of(5)) == (6.0, 11.0), "a shorter file is read from its beginning"
