"""`coral replay`: decided again, what comes out otherwise is named; and the fleet is shown as it was."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from journal_recorder import FOLDER, RULES, JournalRecorder, moment
from sample import make_run
from stage import SEED, submitted

from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.decide import decide
from coral.fleet.events import Moment
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.fleet.run_state import Fleet
from coral.journal import segments
from coral.journal.replay import REPORT_EVERY, Replay, replay
from workspace.layout import Layout

Shown = Callable[..., str]


class Clerk(JournalRecorder):
    """Writes down what was not decided, too."""

    def write(
        self,
        clock: float,
        events: tuple[on.Event, ...],
        actions: tuple[do.Action, ...] | None = None,
        after: Fleet | None = None,
    ) -> None:
        now = moment(clock)
        decided, said = decide(self.fleet, events, now, self.rules)
        after = decided if after is None else after
        self.journal.record(now, events, said if actions is None else actions, self.fleet, after)
        self.fleet = after


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CORAL_AGENT", raising=False)
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "runs")


@pytest.fixture
def clerk(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> Clerk:
    monkeypatch.setenv("COLUMNS", "200")
    made = Clerk(layout.journal)
    made.play()
    return made


# --- the same again -------------------------------------------------------------------------------------------------


def test_the_same_decisions_come_out_again(clerk: Clerk, shown: Shown, layout: Layout) -> None:
    assert shown("replay") == "7 decisions on 8 events: all the same"
    assert shown("replay", layout.root.name) == shown("replay", "--run", str(layout.root))
    assert json.loads(shown("replay", "--json")) == {
        "same": 7,
        "different": 0,
        "events": 8,
        "versions": ["0.1.0"],
        "heads": [],
        "first": None,
    }


def test_different_actions_are_shown_with_the_recorded_ones(clerk: Clerk, shown: Shown) -> None:
    event = submitted("ann", 5)
    clerk.write(65, (event,), (do.LogEvent(type="made up", text="never \x1b[31m decided"),))
    clerk.write(66, (on.OutputSeen(agent="ann", launch=2, has_prompt=True),), ())
    clerk.decide(67, submitted("ben", 6))
    said = shown("replay", code=1).splitlines()
    # What comes after the first is judged by itself: one that begins where the recorded one ended is right.
    assert said[0] == (
        "2 of 10 decisions differ, the first in 000001.jsonl, line 10, at 2030-01-01T00:01:05.000Z (1 min 5 s)"
    )
    assert said[1].startswith('  on        Submitted(submission={"is": "Submission", "id": "00000000000000000005"')
    assert said[2] == '  recorded  LogEvent(type="made up", text="never \\u001b[31m decided")'
    taken = '  again     TakeIn(number=2, agent="ann", commit="0000000000000000000000000000000000000005", kind="real")'
    assert said[3] == taken
    assert said[4] == '            Accept(agent="ann", submission="00000000000000000005", number=2)'
    assert len(said) == 5
    found = json.loads(shown("replay", "--json", code=1))
    assert (found["same"], found["different"]) == (8, 2)
    first = found["first"]
    assert (first["file"], first["line"], first["at"], first["records"]) == ("000001.jsonl", 10, 65.0, [])
    assert [action["is"] for action in first["again"]] == ["TakeIn", "Accept"]
    assert [event["is"] for event in first["events"]] == ["Submitted"]


def test_a_different_state_is_named(clerk: Clerk, shown: Shown) -> None:
    events = (submitted("ann", 5),)
    after, _ = decide(clerk.fleet, events, Moment(run_time=65.0, wall_time=""), clerk.rules)
    agents = {**after.agents, "ben": replace(after.agents["ben"], crashes=3)}
    run = replace(after.run, message_count=99)
    clerk.write(65, events, None, replace(after, agents=agents, run=run, pending={}))
    said = shown("replay", code=1).splitlines()
    assert said[0].startswith("1 of 8 decisions differ")
    assert said[-1] == "  not alike run, agents.ben, pending.2"


def test_a_difference_without_actions_is_shown_with_the_version_that_wrote_the_journal(
    clerk: Clerk, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    clerk.write(65, (), (do.Finish(end=RunEnd(RunEndKind.ALL_RETIRED)),))
    assert shown("replay", code=1).splitlines()[1:] == [
        "  on        nothing",
        '  recorded  Finish(end={"is": "RunEnd", "kind": "all_retired"})',
        "  again     nothing",
    ]
    monkeypatch.setattr("coral.cli.commands.replay.__version__", "9.9.9")
    other = "written by version 0.1.0; this is 9.9.9, which may decide otherwise"
    assert shown("replay", code=1).splitlines()[-1] == other


def test_changed_rules_hold_from_their_line_on(clerk: Clerk) -> None:
    clerk.rules = replace(RULES, slots=1, budget_attempts=1)
    clerk.journal.open_supervision(clerk.rules, Moment(run_time=7.0, wall_time=""), FOLDER)
    clerk.decide(8, on.Resumed())
    clerk.decide(9)
    assert clerk.fleet.run.stopping
    assert replay(clerk.journal.path).agrees


def test_an_event_that_cannot_be_decided_names_the_version_that_can(clerk: Clerk, shown: Shown) -> None:
    clerk.journal.record(Moment(run_time=7.0, wall_time=""), (SEED,), (), clerk.fleet, clerk.fleet)  # type: ignore[arg-type]
    said = shown("replay", code=1)
    assert "000001.jsonl: line 10: ValueError" in said
    assert "replay it with the version that wrote it: 0.1.0" in said


def test_a_long_replay_shows_its_progress(
    clerk: Clerk, monkeypatch: pytest.MonkeyPatch, coral: Callable[..., tuple[int, str, str]]
) -> None:
    for clock in range(7, 7 + 2 * REPORT_EVERY):
        clerk.decide(clock, on.OutputSeen(agent="ann", launch=2, has_prompt=True))
    counts: list[int] = []

    def report(so_far: Replay) -> None:
        counts.append(so_far.same)

    assert replay(clerk.journal.path, report).same == 7 + 2 * REPORT_EVERY
    assert [count for count in counts if count] == [REPORT_EVERY, 2 * REPORT_EVERY]
    monkeypatch.setattr("coral.cli.commands.replay.FIRST_PROGRESS", 0.0)
    assert coral("replay")[2] == f"{REPORT_EVERY} decisions\n"


# --- as it was ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "attempts", "grading", "launches"),
    [
        ("0.5s", "0 attempts", "", ["1", "0"]),
        ("2.5s", "0 attempts", " · 1 queued", ["1", "1"]),
        ("3s", "0 attempts", " · grading #1", ["1", "1"]),
        ("4s", "1 attempt", "", ["1", "1"]),
        ("0m5s", "1 attempt", "", ["2", "1"]),
        ("1d2h", "1 attempt", "", ["2", "1"]),
        ("2030-01-01T00:00:03Z", "0 attempts", " · grading #1", ["1", "1"]),
        ("2030-01-01T02:00:03.5+02:00", "0 attempts", " · grading #1", ["1", "1"]),
        ("2031-01-01", "1 attempt", "", ["2", "1"]),
    ],
)
def test_the_fleet_is_shown_as_it_was(
    clerk: Clerk, shown: Shown, layout: Layout, at: str, attempts: str, grading: str, launches: list[str]
) -> None:
    lines = shown("replay", "--at", at).splitlines()
    assert lines[0].startswith(f"toy · {layout.root.name} · running")
    assert lines[2] == attempts + grading
    rows = [line.split() for line in lines if line.startswith(("ann", "ben"))]
    assert [row[0] for row in rows] == ["ann", "ben"]
    assert [row[2] for row in rows] == launches


def test_the_task_is_named_as_at_present(clerk: Clerk, shown: Shown, layout: Layout) -> None:
    layout.status.write_text('{"task": "two words", "attempts": 9}')
    assert shown("replay", "--at", "4s").startswith(f"two words · {layout.root.name} · running")


def test_a_past_time_is_found_in_any_segment(layout: Layout, shown: Shown) -> None:
    clerk = Clerk(layout.journal, long=1)
    clerk.play()
    for clock in range(7, 120):
        clerk.decide(
            clock, on.OutputSeen(agent="ann", launch=2, has_prompt=True, activity=("tool" if clock % 2 else ""))
        )
    assert len(segments(layout.journal)) > 4
    for clock in range(7, 119, 9):
        found = json.loads(shown("replay", "--at", f"{clock}.5s", "--json"))
        ann = found["agents"][0]
        assert (found["clock"], ann["beat"]) == (clock, {"phase": "tool" if clock % 2 else "", "message": "", "age": 0})
        assert found["fleet"]["agents"]["ann"]["last_output_at"] == clock
        wall = f"2030-01-01T00:{clock // 60:02d}:{clock % 60:02d}.5Z"
        assert json.loads(shown("replay", "--at", wall, "--json")) == found


def test_the_last_sign_of_life_is_shown_with_its_age(clerk: Clerk, shown: Shown) -> None:
    clerk.decide(65, on.OutputSeen(agent="ann", launch=2, has_prompt=True, activity="thinking"))
    clerk.decide(77, on.OutputSeen(agent="ben", launch=1, has_prompt=True, session="s"))
    lines = shown("replay", "--at", "2m").splitlines()
    assert lines[1] == "best 1.5 #1 by ann  seed 0 (+1.5)  try 1"
    (row,) = [line for line in lines if line.startswith("ann")]
    assert "12 s thinking" in row
    assert "as it was at 2030-01-01T00:01:17.000Z" in lines


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2029-12-31T23:59Z", "it began later\n  its journal begins at 2030-01-01T00:00:00.000Z"),
        ("yesterday", "cannot read 'yesterday' as a time\n  give a time of day, 2030-01-02T15:04, or how long"),
        ("", "cannot read '' as a time"),
        ("5", "cannot read '5' as a time"),
        ("0001-01-01T00:00+14:00", "cannot read '0001-01-01T00:00+14:00' as a time"),
        ("9999-99-99", "cannot read '9999-99-99' as a time"),
    ],
)
def test_an_unreadable_or_too_early_time_is_refused(layout: Layout, shown: Shown, at: str, said: str) -> None:
    clerk = Clerk(layout.journal)
    clerk.journal.open_supervision(RULES, Moment(run_time=0.0, wall_time="2030-01-01T00:00:00.000Z"), FOLDER)
    assert said in shown("replay", "--at", at, code=1)


# --- where there is nothing to replay -------------------------------------------------------------------------------


def test_a_run_without_a_journal_cannot_be_replayed(layout: Layout, shown: Shown) -> None:
    said = shown("replay", code=1)
    assert said.startswith(f"coral: cannot replay {layout.root.name}: it has no journal\n")


def test_a_damaged_journal_is_reported_in_two_lines_and_agents_may_not_replay(
    clerk: Clerk, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = segments(clerk.journal.path)
    file.write_bytes(file.read_bytes().replace(b"ann", b"nan", 1))
    said = shown("replay", code=1)
    assert "000001.jsonl: line 2 is damaged: it is not as it was written" in said
    with pytest.raises(CoralError):
        replay(clerk.journal.path)
    monkeypatch.setenv("CORAL_AGENT", "ann")
    assert "cannot replay a run: that is for the operator, and you are ann" in shown("replay", code=1)
