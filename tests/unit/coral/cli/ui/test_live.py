"""The live view: what it reads as a run goes, and that it fits any screen."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from rich.console import Console
from sample import AGENTS, agent_status, attempt, make_run, stamp, write_events, write_status

from attempts.record import Kind, Verdict
from attempts.store import Store
from coral.cli.ui import live, live_frame
from coral.cli.ui.events import event_line
from coral.cli.ui.live import follow
from coral.cli.ui.live_frame import frame, progress
from coral.cli.ui.live_keys import Key
from coral.cli.ui.live_state import KEYS, ViewState
from coral.cli.ui.live_transcript import LiveTranscript
from coral.cli.ui.run_follower import RunFollower
from coral.cli.ui.summary import summarize
from coral.fleet.reasons import Budget, BudgetKey, Reason, ReasonKind, RunEnd, RunEndKind
from coral.reading.lenient_json import LenientJson
from coral.reading.timeline import Timeline
from coral.views import format
from coral.views.reasons import reason_data
from heartbeats.interval import WatchedLook
from workspace import knowledge
from workspace.layout import Layout


def published(number: int, clock: float) -> dict[str, object]:
    text = f"improved: try {number}"
    return {"at": stamp(1), "clock": clock, "type": "published", "agent": "agent-1", "text": text, "attempt": number}


def heartbeat(number: int, clock: float) -> list[dict[str, object]]:
    """What one heartbeat leaves in the timeline."""
    common = {"clock": clock, "agent": "agent-2"}
    message = {"name": "reflect", "id": f"h{number}", "attempt": number}
    return [
        {**common, "type": "interrupted", "text": "launch 1"},
        {**common, "type": "exited", "text": "launch 1 ended: interrupted", "launch": 1, "ending": "interrupted"},
        {**common, "type": "spawned", "text": "launch 2 (heartbeat): reflect", "reason": {"kind": "heartbeat"}},
        {**common, "type": "heartbeat", "text": f"reflect (h{number}) received", "messages": [message]},
    ]


def test_an_unfinished_line_waits(layout: Layout) -> None:
    write_events(layout, published(1, 5))
    timeline = Timeline(layout)
    assert [event.integer("attempt") for event in timeline.new()] == [1]
    with layout.events.open("a") as file:
        file.write('{"type": "published", ')
    assert timeline.new() == []
    with layout.events.open("a") as file:
        file.write('"attempt": 2}\nnot json\n[1]\n{"attempt": 3}\n')
    assert [event.integer("attempt") for event in timeline.new()] == [2, 3]
    assert timeline.new() == []
    layout.events.write_text(json.dumps(published(9, 1)) + "\n")
    assert [event.integer("attempt") for event in timeline.new()] == [9]
    layout.events.unlink()
    assert timeline.new() == []
    write_events(layout, published(1, 5))
    timeline = Timeline(layout, layout.events.stat().st_size)
    write_events(layout, published(2, 6))
    assert [event.integer("attempt") for event in timeline.new()] == [2]


def test_the_curve_runs_on_the_runs_own_clock(layout: Layout) -> None:
    """Between the two improvements the run stood still for nine minutes; the curve knows nothing of that."""
    write_events(layout, published(1, 5), published(4, 60))
    watch = RunFollower(layout)
    watch.update()
    assert watch.points == [(0.0, 1.0), (5.0, 1.5), (60.0, 2.0)]
    Store(layout.attempts).publish(attempt(5, 2.5, verdict=Verdict.NEW_BEST))
    Store(layout.attempts).publish(attempt(6, 9.0, kind=Kind.TUNE))
    write_events(layout, published(5, 61))
    watch.update()
    assert watch.points[3:] == [(61.0, 2.5)]


def test_where_the_seed_has_failed_the_first_attempt_with_a_score_is_a_new_best(tmp_path: Path) -> None:
    for scores, gained in (((None, 1.0, 0.5), [5.0]), ((1.0, 0.5), [])):
        layout = make_run(tmp_path / "runs", scores=scores)
        write_status(layout, baseline=scores[0], clock=100.0)
        write_events(layout, published(1, 5), published(2, 60))
        watch = RunFollower(layout)
        watch.update()
        assert len(watch.points) == 1
        assert watch.gained == gained
        assert progress(watch).plain.startswith("1 new best in" if gained else "0 new bests in")


def test_the_seed_as_the_best_again_is_no_new_best(tmp_path: Path) -> None:
    layout = make_run(tmp_path / "runs", scores=(1.0, 1.5))
    again = {"kind": Kind.CONFIRM, "verdict": Verdict.NEW_BEST}
    Store(layout.attempts).publish(attempt(2, 0.25, kind=Kind.CONFIRM, of=1, verdict=Verdict.WORSE))
    Store(layout.attempts).publish(attempt(3, 1.0, agent="", of=0, tree=f"{0:040x}", **again))
    write_status(layout, clock=100.0)
    write_events(layout, published(1, 5), published(2, 60), published(3, 70))
    watch = RunFollower(layout)
    watch.update()
    assert [at for at, _ in watch.points] == [0.0, 5.0, 70.0]
    assert watch.gained == [5.0]


def test_a_curve_without_a_timeline_follows_the_wall_clock(layout: Layout) -> None:
    watch = RunFollower(layout)
    watch.update()
    assert [round(best, 2) for _, best in watch.points] == [1.0, 1.5, 2.0]
    assert [at for at, _ in watch.points] == sorted(at for at, _ in watch.points)
    layout.status.write_text("{")
    watch.update()
    assert watch.view.status.text("task") == "toy"


def _drawn(watch: RunFollower, width: int, height: int, state: ViewState | None = None, **more: Any) -> list[str]:
    out = Console(width=width, height=height, file=io.StringIO(), color_system=None, force_terminal=True)
    with out.capture() as capture:
        out.print(frame(watch, out, "Ctrl-C leaves", state, **more))
    return capture.get().splitlines()


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    width=st.integers(min_value=40, max_value=200),
    height=st.integers(min_value=16, max_value=70),
    agents=st.integers(min_value=0, max_value=120),
    events=st.integers(min_value=0, max_value=60),
)
def test_the_view_fits_the_screen(layout: Layout, width: int, height: int, agents: int, events: int) -> None:
    alerts = [{"id": "a", "level": "alert", "text": "x" * 300, "at": stamp(1)}]
    write_status(layout, agents=[agent_status(f"agent-{number}") for number in range(agents)], alerts=alerts)
    layout.events.unlink(missing_ok=True)
    write_events(layout, *(published(number, number) for number in range(events)))
    watch = RunFollower(layout)
    watch.update()
    lines = _drawn(watch, width, height)
    assert len(lines) <= height
    assert max(len(line) for line in lines) <= width
    assert lines[-1].startswith("? keys")
    assert "Ctrl-C leaves" in lines[-1]
    assert not agents or any("agent-0" in line for line in lines)


def test_the_view_shows_everything_where_it_fits(layout: Layout) -> None:
    write_events(layout, published(1, 5), published(4, 60))
    watch = RunFollower(layout)
    watch.update()
    said = "\n".join(_drawn(watch, 120, 40))
    for text in (
        "toy · ",
        "best 2 #4",
        *AGENTS,
        "thinking about rows",
        "redirect 4",
        "┤",
        "0:05  agent-1",
        "#4 improved",
    ):
        assert text in said


def test_the_view_says_whether_it_gets_anywhere_before_whether_it_is_alive(layout: Layout) -> None:
    knowledge.write_note(layout.shared, "s", {"title": "Rows win", "kind": "synthesis"}, "# Rows win")
    write_status(layout, clock=4000.0, budgets=[{"key": "attempts", "limit": 10, "used": 4}])
    write_events(layout, published(1, 5), published(4, 3990), *heartbeat(4, 3991))
    watch = RunFollower(layout)
    watch.update()
    lines = _drawn(watch, 120, 40)
    said = "\n".join(lines)
    assert "1 new best in the last hour · the last 10 s ago · concluded " in said.replace("  ", " ")
    assert "Rows win" in said
    assert "budget attempts █████░░░░░░░ 4 of 10, ~1 h left" in said
    places = [next(place for place, line in enumerate(lines) if part in line) for part in ("Rows win", "┤", "phase")]
    assert places == sorted(places)
    assert "agent-2   reflects on #4" in said
    assert "launch 2" not in said
    assert "launch 2 (heartbeat): reflect" in "\n".join(_drawn(watch, 120, 40, ViewState(verbose=True)))


def followed(layout: Layout, agents: int = 2, events: int = 0) -> tuple[RunFollower, ViewState]:
    """What a view has of a run with so many agents and events."""
    names = [f"agent-{number + 1}" for number in range(agents)]
    write_status(layout, agents=[agent_status(name) for name in names])
    write_events(layout, *(published(number, number) for number in range(events)))
    watch, state = RunFollower(layout), ViewState()
    watch.update()
    state.know(names, [])
    return watch, state


def test_the_chosen_agent_is_marked_and_in_sight(layout: Layout) -> None:
    watch, state = followed(layout, agents=60)
    assert not any(line.startswith("> ") for line in _drawn(watch, 80, 24, state))
    state.press(Key("k", "k"))
    lines = _drawn(watch, 80, 24, state)
    assert [line.split()[:2] for line in lines if line.startswith("> ")] == [[">", "agent-60"]]
    assert "  agent-1 " not in "\n".join(lines)
    state.press(Key("enter"))
    assert any(line.startswith("> agent-60") for line in _drawn(watch, 40, 16, state))


def test_a_line_says_how_many_events_are_newer_than_those_that_one_reads(layout: Layout) -> None:
    watch, state = followed(layout, events=100)
    _drawn(watch, 40, 24, state)
    state.press(Key("page up"))
    before = _drawn(watch, 40, 24, state)
    write_events(layout, *(published(number, number) for number in range(100, 130)))
    watch.update()
    after = _drawn(watch, 40, 24, state)
    places = [place for place, line in enumerate(before) if line != after[place]]
    assert [before[place].split()[:4] for place in places] == [["↓", "1", "newer", "event:"]]
    assert [after[place].split()[:4] for place in places] == [["↓", "31", "newer", "events:"]]
    state.press(Key("end"))
    assert "2:09 agent-1 #129" in _drawn(watch, 40, 24, state)[-2]


def test_keys_and_answers_stand_at_the_bottom(layout: Layout) -> None:
    watch, state = followed(layout)
    for width in (40, 120):
        state.press(Key("q", "q"))
        lines = _drawn(watch, width, 24, state)
        assert lines[-2].startswith("q does nothing")
        assert (lines[-1].startswith("? keys"), "Ctrl-C leaves" in lines[-1]) == (True, True)
        for letter in "mtry fewer restarts, and look at the edges":
            state.press(Key(letter, letter))
        lines = _drawn(watch, width, 24, state)
        assert lines[-2].startswith("tell all agents: ")
        assert lines[-2].rstrip().endswith("edges")
        assert lines[-1].strip() == "Enter sends · Esc leaves it"
        state.press(Key("escape"))
    state.say("cannot do that: " + "because " * 40, refused=True)
    assert [line[:7] for line in _drawn(watch, 40, 24, state)[-4:]] == ["cannot ", "because", "because", "? keys "]
    state.press(Key("?", "?"))
    listed = "\n".join(_drawn(watch, 40, 24, state))
    assert all(keys in listed for keys, _ in KEYS)


def test_a_conversation_takes_the_place_of_the_events(layout: Layout) -> None:
    watch, state = followed(layout, events=5)
    layout.logs("agent-1").mkdir(parents=True, exist_ok=True)
    layout.prompt("agent-1", 1).write_text("be bold\n" * 40)
    for key in (Key("j", "j"), Key("t", "t")):
        state.press(key)
    talk = LiveTranscript("agent-1")
    talk.update(watch.view, [])
    for width, height in ((40, 20), (120, 40)):
        lines = _drawn(watch, width, height, state, conversation=talk)
        assert len(lines) == height
        said = "\n".join(lines)
        assert "the conversation of agent-1" in said
        assert "be bold" in said
        assert "… 28 more lines" in said
        assert "improved" not in said
        assert lines[-1].startswith("Esc back")


def test_attempts_are_points_with_the_colour_of_their_agent(layout: Layout) -> None:
    write_events(layout, *(published(number, number * 10.0) for number in range(1, 5)))
    watch = RunFollower(layout)
    watch.update()
    assert list(watch.attempts) == [(10.0, 1.5, "agent-2"), (30.0, 1.25, "agent-2"), (40.0, 2.0, "agent-1")]
    Store(layout.attempts).publish(attempt(5, 1.75))
    write_events(layout, published(5, 61))
    watch.update()
    assert watch.attempts[-1] == (61, 1.75, "agent-2")
    styles = {span.style for text in live_frame.curve(watch, 80, 7) for span in text.spans}
    assert set(watch.styles().values()) & styles


def test_an_event_is_one_safe_line() -> None:
    said = event_line(LenientJson({"clock": 3.2, "type": "alert", "agent": "a\x1b", "text": "b\x1b[2J\nc"})).plain
    assert said == "    0:03  a         alert b[2J c"
    assert event_line(LenientJson({"type": "stopped", "text": "stopped: enough"})).plain.endswith("   stopped: enough")
    assert event_line(LenientJson({})).plain.strip() == ""


def test_without_a_terminal_every_event_is_a_line(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    write_events(layout, published(1, 5), *heartbeat(1, 5)[:3])
    looks = iter([False, True])

    def over() -> bool:
        last = next(looks)
        if last:
            write_events(layout, published(2, 6))
        return last

    period, live.PERIOD = live.PERIOD, 0.0
    try:
        follow(layout, over, hint="")
    finally:
        live.PERIOD = period
    assert WatchedLook(layout.supervisor_beats).is_watched()
    assert capsys.readouterr().out == (
        "    0:05  agent-1   #1 improved: try 1\n    0:06  agent-1   #2 improved: try 2\n"
    )


def test_the_summary_of_a_run(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    write_events(layout, published(1, 5), published(4, 60))
    write_status(layout, "stopped", reason=reason_data(RunEnd(RunEndKind.BUDGET, budget=Budget(BudgetKey.HOURS, 2.0))))
    knowledge.write_note(layout.shared, "s", {"title": "After 4", "kind": "synthesis"}, "# After 4\n\n- rows **win**")
    summarize(layout)
    said = capsys.readouterr().out
    parts = ("stopped: the budget of 2 hours is used up", "Leaderboard", "Best score over time")
    later = ("What the agents concluded", "• rows win", "To look further", "coral show 4 --diff")
    places = [said.index(part) for part in (*parts, *later)]
    assert places == sorted(places)
    assert said.count("After 4") == 1
    assert str(layout.root) in said
    assert "coral export 4  " in said
    assert "coral resume budget.hours=4  continue from here\n" in said  # with the same budget it would end at once


def test_the_summary_of_a_run_without_its_status_names_the_lead(
    layout: Layout, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(layout.attempts).publish(attempt(5, 9.0))
    layout.status.unlink()
    summarize(layout)
    said = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "coral show 5 --diff the lead, which is not proven to be better" in said


def test_own_budgets_that_ended_all_agents_are_to_be_raised_by_a_command_on_one_line(
    layout: Layout, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    own = Reason(ReasonKind.OWN_BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 118))
    agents = [{**agent_status("ann"), "reason": reason_data(own)}, {**agent_status("ben"), "reason": None}]
    write_status(layout, "stopped", reason=reason_data(RunEnd(RunEndKind.ALL_RETIRED)), agents=agents)
    summarize(layout)
    said = capsys.readouterr().out
    assert "; continue it with `coral resume budget.per_agent.attempts=236`\n" in said
    assert "coral resume budget.per_agent.attempts=236  continue from here\n" in said


def test_the_summary_offers_a_patch_where_there_is_no_repository(
    layout: Layout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    layout.task_file.write_text(f"origin: {tmp_path / 'task' / 'task.yaml'}\n")
    summarize(layout)
    assert "coral export 4 --patch 4.patch  its change as a patch" in capsys.readouterr().out
    (tmp_path / ".git").mkdir()
    summarize(layout)
    assert "coral export 4  " in capsys.readouterr().out


def test_the_summary_of_a_run_in_which_nothing_happened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summarize(make_run(tmp_path / "runs", scores=(1.0,)))
    said = capsys.readouterr().out
    assert "nobody has beaten the seed (1)" in said
    assert "Leaderboard" not in said
    assert "coral show" not in said
    assert format.NONE not in said
