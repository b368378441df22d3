"""The journal gives back what was written, whatever became of its last line; what cannot be written was never done."""

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from stage import QUIET_RULES, SEED, Stage, attempt_zero, submitted

from coral.errors import CoralError
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.decide import decide
from coral.fleet.events import Ending, Moment
from coral.fleet.policy import Rules
from coral.fleet.state import FLEET, Fleet
from coral.journal import Decision, Journal, decisions, fold, published, read_lines
from coral.process import Identity
from heartbeats.heartbeat import BUILT_IN

RULES = replace(QUIET_RULES, heartbeats=BUILT_IN)
FOLDER = (3, 14)


class Scribe:
    """Decides and writes down, as the loop does."""

    def __init__(self, path: Path, rules: Rules = RULES) -> None:
        self.journal = Journal(path)
        self.rules = rules
        self.fleet = Fleet()
        self.taken: list[Decision] = []

    def decide(self, clock: float, *events: on.Event) -> None:
        now = Moment(clock=clock, wall=f"wall {clock:g}")
        after, actions = decide(self.fleet, events, now, self.rules)
        self.journal.record(now, events, actions, self.fleet, after)
        self.taken.append(Decision(now=now, events=events, actions=actions, changes={}))
        self.fleet = after

    def play(self) -> None:
        """A short history in which every kind of record is made, changed and dropped."""
        stage = Stage(2, self.rules)  # for its events alone
        self.journal.open_supervision(self.rules, Moment(clock=0.0, wall="wall 0"), FOLDER)
        self.decide(0, on.Opened(run="run", agents=("ann", "ben"), baseline=attempt_zero()))
        self.journal.record_started({"ann": (1, Identity(7, 70, "boot"))})
        self.decide(1, stage.heard("ann"))
        stage.at(1, submission := stage.submission("ann"))
        self.decide(2, submission)
        self.decide(3, stage.taken(1))
        self.decide(4, on.Graded(number=1, launch=1, outcome=on.Outcome.SCORED, score=1.5, metrics={"n": 1}))
        self.decide(5, on.Published(number=1), on.Exited(agent="ann", launch=1, ending=Ending.INTERRUPTED))
        entry = {"name": "breathe", "every": 2, "prompt": "in ⟶ out"}
        self.decide(6, on.Requested(sender="ann", id="1", request=on.SetHeartbeat(owner="ann", entry=entry)))


@pytest.fixture
def scribe(tmp_path: Path) -> Iterator[Scribe]:
    made = Scribe(tmp_path / "journal.jsonl")
    yield made
    made.journal.close()


def test_folding_gives_back_the_fleet_the_clock_the_rules_and_who_was_started(scribe: Scribe) -> None:
    scribe.play()
    memory = fold(scribe.journal.path)
    assert memory.fleet == scribe.fleet
    # A decision goes through its records in their order.
    assert list(memory.fleet.agents) == list(scribe.fleet.agents)
    assert list(memory.fleet.heartbeats) == [FLEET, "ann", "ben"]
    assert memory.fleet.pending == {}
    assert (memory.clock, memory.rules, memory.folder) == (6.0, RULES, FOLDER)
    assert memory.identities == {"ann": (1, Identity(7, 70, "boot"))}


def test_a_journal_without_a_line_is_a_run_before_its_first(tmp_path: Path) -> None:
    Journal(tmp_path / "journal.jsonl").close()
    memory = fold(tmp_path / "journal.jsonl")
    assert (memory.fleet, memory.clock, memory.rules, memory.identities) == (Fleet(), 0.0, None, {})
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o777 == 0o600


def test_deciding_again_what_the_journal_holds_gives_what_it_says(scribe: Scribe) -> None:
    scribe.play()
    fleet, again = Fleet(), []
    for rules, taken in decisions(scribe.journal.path):
        fleet, actions = decide(fleet, taken.events, taken.now, rules)
        assert actions == taken.actions
        again.append(replace(taken, changes={}))
    assert fleet == scribe.fleet
    assert again == scribe.taken


def test_each_decision_comes_with_the_rules_it_was_made_by(scribe: Scribe) -> None:
    scribe.play()
    scribe.rules = replace(RULES, slots=7)
    scribe.journal.open_supervision(scribe.rules, Moment(clock=6.5, wall=""), (1, 2))
    scribe.decide(7, on.Resumed())
    slots = [rules.slots for rules, _ in decisions(scribe.journal.path)]
    assert slots == [4] * 7 + [7]
    memory = fold(scribe.journal.path)
    assert (memory.rules, memory.folder, memory.clock) == (scribe.rules, (1, 2), 7.0)


def test_what_was_published_comes_once_each_in_its_order(scribe: Scribe) -> None:
    scribe.play()
    scribe.decide(7, submitted("ben", 9))
    scribe.decide(8, on.TakenIn(number=2, commit=SEED, tree=SEED, parent=""))
    scribe.decide(9, on.Graded(number=2, launch=1, outcome=on.Outcome.FAILED, reason='"is":"Publish"'))
    # A supervisor that takes over publishes again what the one before may not have finished.
    scribe.decide(10, on.Resumed())
    scribe.decide(11, on.Resumed())
    acted = [action for _, taken in decisions(scribe.journal.path) for action in taken.actions]
    said = [action.attempt for action in acted if isinstance(action, do.Publish)]
    assert [each.number for each in said] == [0, 1, 2, 2, 2]
    assert list(published(scribe.journal.path)) == said[:3]


def test_only_what_changed_is_written(scribe: Scribe) -> None:
    scribe.play()
    sets = [line["set"] for line in read_lines(scribe.journal.path) if "set" in line]
    assert [sorted(each) for each in sets] == [
        ["agents", "heartbeats", "run"],
        ["agents"],
        ["agents", "pending", "run"],
        ["pending"],
        ["agents", "pending", "run"],
        ["agents", "pending"],
        ["agents", "heartbeats", "run"],
    ]
    assert [sorted(each.get("agents", {})) for each in sets][2:] == [["ann"], [], ["ann"], ["ann"], ["ann"]]
    # An attempt that is published is no longer on its way.
    assert sets[5]["pending"] == {"1": None}


def test_the_clock_of_the_run_never_goes_back(scribe: Scribe) -> None:
    scribe.play()
    scribe.decide(3, on.Heard(agent="ann", launch=2))
    assert fold(scribe.journal.path).clock == 6.0


# --- torn and damaged ---------------------------------------------------------------------------------------------


def test_a_line_torn_at_any_byte_is_as_if_it_had_never_been(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "whole.jsonl")
    scribe.play()
    scribe.journal.close()
    whole = scribe.journal.path.read_bytes()
    last = whole.rindex(b"\n", 0, -1) + 1
    torn = tmp_path / "torn.jsonl"
    torn.write_bytes(whole[:last])
    before = fold(torn)
    for end in (*range(last, len(whole), 37), len(whole) - 1):
        torn.write_bytes(whole[:end])
        assert fold(torn) == before
        journal = Journal(torn)
        journal.close()
        assert torn.read_bytes() == whole[:last]
    torn.write_bytes(whole)
    Journal(torn).close()
    assert torn.read_bytes() == whole


def test_a_tail_torn_long_before_its_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    for before in (b"", b'{"at":1}\n'):
        for size in (65535, 65536, 65537, 200_000):
            path.write_bytes(before + b"x" * size)
            assert list(read_lines(path)) == ([{"at": 1}] if before else [])
            Journal(path).close()
            assert path.read_bytes() == before


def test_after_a_torn_line_writing_goes_on(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path / "journal.jsonl")
    scribe.play()
    scribe.journal.close()
    with scribe.journal.path.open("ab") as file:
        file.write(b'{"at":9,"events":[')
    scribe.journal = Journal(scribe.journal.path)
    scribe.decide(10, on.Heard(agent="ann", launch=2))
    scribe.journal.close()
    assert fold(scribe.journal.path).fleet == scribe.fleet


def test_damage_in_the_middle_is_told_with_its_place(scribe: Scribe) -> None:
    scribe.play()
    lines = scribe.journal.path.read_bytes().split(b"\n")
    lines[2] = lines[2][:-5]
    scribe.journal.path.write_bytes(b"\n".join(lines))
    with pytest.raises(CoralError, match="line 3 is damaged") as raised:
        fold(scribe.journal.path)
    assert "cut the journal before that line" in raised.value.hint


def test_a_journal_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text(json.dumps({"format": 2, "rules": {}}) + "\n")
    with pytest.raises(CoralError, match="it was written by a newer version"):
        fold(path)


# --- a disk that is full ------------------------------------------------------------------------------------------


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1, 40])
def test_a_line_that_does_not_fit_leaves_no_trace(scribe: Scribe, room: int) -> None:
    scribe.play()
    before, fleet = scribe.journal.path.read_bytes(), scribe.fleet
    event = on.Broken(item="x" * 200, reason="y")
    with files_of_at_most(len(before) + room), pytest.raises(OSError):
        scribe.decide(8, event)
    assert scribe.journal.path.read_bytes() == before
    assert scribe.fleet is fleet
    # With room again, it is decided as if for the first time.
    scribe.decide(9, event)
    assert fold(scribe.journal.path).fleet == scribe.fleet
