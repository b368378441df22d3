"""The loop: chains, errors that are heard, limits, and a memory that contradicts the world."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sample import attempt

from attempts.record import Direction
from attempts.store import Store
from coral.native.calls import Call, Remember, Say, Search, WriteNote
from coral.native.format import both, decimals, difference, gain, numbers, score
from coral.native.known_attempts import Board
from coral.native.loop import DEEPEST, TROUBLES, Loop, act
from coral.native.memory import Trial
from coral.native.options import Options
from coral.native.output import Output
from coral.native.run_view import Surroundings
from coral.native.search.explore import Explorer
from coral.native.situation import Event, Idle, Prompted, Signal, Situation, Trouble, Written
from coral.native.snapshots import Keeper
from coral.native.toolbox import Toolbox
from workspace.knowledge import create, list_notes
from workspace.layout import Layout

Policy = Callable[[Situation, Event], tuple[Call, ...]]


class Given:
    """A brain that does as the test says, and remembers what it was asked."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.events = policy, list[Event]()

    def reason(self, situation: Situation, event: Event) -> tuple[Call, ...]:
        self.events.append(event)
        return self.policy(situation, event)


class Setting:
    """An agent's rooms without a supervisor: records, a folder with one number, shared knowledge, memory."""

    def __init__(self, root: Path) -> None:
        layout = Layout(root)
        self.clone = layout.clone("agent-1")
        self.clone.mkdir(parents=True)
        (self.clone / "p.json").write_text('{"x": 1.5}')
        create(layout.shared)
        (self.clone / ".shared").symlink_to(layout.shared)
        layout.attempts.mkdir(parents=True)
        self.shared, self.state = layout.shared, root / "state"
        self.store = Store(layout.attempts)
        self.store.publish(attempt(0, 1.0))
        self.keeper = Keeper.create(self.state, "s-1")
        self.file = (root / "out.jsonl").open("w+b")
        self.output = Output(self.file.fileno())
        around = Surroundings(root, "agent-1", self.clone, self.state, Direction.MAXIMIZE)
        explorer = Explorer(self.keeper, self.output, around, ["p.json"], "", self.state / "x", 0.1, 1.0, True, 0)
        self.toolbox = Toolbox(self.keeper, self.output, around, explorer)

    def run(self, policy: Policy, prompt: str = "", steps: int = 30) -> tuple[str, list[Event]]:
        brain = Given(policy)
        return Loop(self.keeper, self.output, brain, self.toolbox, steps).run(prompt), brain.events

    def printed(self, kind: str) -> list[dict[str, object]]:
        self.file.seek(0)
        return [line for line in map(json.loads, self.file.read().splitlines()) if line["type"] == kind]


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    made = Setting(tmp_path / "run")
    yield made
    made.file.close()


def test_a_heartbeat_that_is_requested_chains_and_one_that_is_not_yields(setting):
    def once(situation: Situation, event: Event) -> tuple[Call, ...]:
        chain = isinstance(event, Idle)
        return (Remember(block="plan", text="x", request_heartbeat=chain),)

    reason, events = setting.run(once, steps=6)
    assert "limit of 6 steps" in reason
    assert [type(event) for event in events] == [Idle, Written] * 3


def test_a_chain_that_runs_away_is_dropped(setting):
    _, events = setting.run(lambda *_: (Remember(block="plan", text="x", request_heartbeat=True),), steps=DEEPEST + 4)
    assert [type(event) for event in events[: DEEPEST + 1]] == [Idle] + [Written] * DEEPEST
    assert isinstance(events[DEEPEST + 1], Idle)
    assert "was dropped" in str(setting.printed("error"))


def test_a_tool_that_fails_is_always_heard_of(setting):
    def wrong_once(situation: Situation, event: Event) -> tuple[Call, ...]:
        if isinstance(event, Trouble):
            return (Remember(block="learned", text=event.message),)
        return (Remember(block="diary", text="x"),)

    _, events = setting.run(wrong_once, steps=2)
    assert [type(event) for event in events] == [Idle, Trouble]
    assert "there is no block 'diary'" in setting.keeper.memory.blocks["learned"]
    assert len(setting.printed("error")) == 1


def test_what_may_pass_is_tried_again_one_deeper():
    signal = Signal(Idle(), 3)
    call = Say(text="x")
    trouble = Trouble(call, "busy", again=True)
    assert act(signal, call, trouble) == [Signal(trouble, 4)]
    assert act(signal, call, Written("x")) == []


def test_failures_in_a_row_end_the_turn(setting):
    search = Search(family="rows", start=None, why="")
    reason, events = setting.run(lambda *_: (Remember(block="diary", text="x"),))
    assert reason == "too many failures in a row"
    assert len(events) == TROUBLES
    assert search.request_heartbeat


def test_each_section_is_answered_in_order_and_saved(setting):
    prompt = "## Heartbeat: b (id h2)\n\nx\n\n## Heartbeat: a (id h1)\n\ny\n"
    _, events = setting.run(lambda s, event: (), prompt=prompt, steps=3)
    assert [event.sections[0].name for event in events if isinstance(event, Prompted)] == ["b", "a"]
    kept = Keeper.resume(setting.state, "s-1")
    assert kept is not None
    assert kept.memory.answered == ("h2", "h1")


def test_a_note_that_cannot_be_written_is_trouble(setting):
    note = WriteNote(name="../x", title="t", kind="note", attempts=(), body="b")
    _, events = setting.run(lambda s, e: (note,) if isinstance(e, Idle) else (), steps=2)
    assert isinstance(events[1], Trouble)
    assert list_notes(setting.shared) == []


def test_a_note_settles_what_it_is_about(setting):
    trial = Trial(title="t", family="rows", number=4, score=1.0, verdict="tied")
    setting.keeper.memory = replace(setting.keeper.memory, trials=(trial, replace(trial, number=5)))
    note = WriteNote(name="n", title="t", kind="note", attempts=(4,), body="b", about=(4,))
    setting.run(lambda *_: (note,), steps=1)
    assert [t.noted for t in setting.keeper.memory.trials] == [True, False]
    (written,) = list_notes(setting.shared)
    assert (written.author, written.attempts, written.kind) == ("agent-1", (4,), "note")


def test_a_memory_of_what_never_was_is_rolled_back(setting):
    """The run was restored from an older copy: the snapshot that agrees with the records is taken."""
    keeper = setting.keeper
    keeper.memory = replace(keeper.memory, episodes=3, board=Board().take([attempt(0, 1.0)], Direction.MAXIMIZE))
    keeper.save()
    later = keeper.memory.board.take([attempt(1, 5.0)], Direction.MAXIMIZE)
    keeper.memory = replace(keeper.memory, episodes=9, board=later)
    keeper.save()
    setting.run(lambda *_: (), steps=1)
    assert keeper.memory.episodes == 3
    assert "#1, which I remember, is not there" in str(setting.printed("error"))


def test_where_no_snapshot_agrees_the_records_are_read_afresh(setting):
    keeper = setting.keeper
    for old in list(keeper.folder.iterdir()):
        old.unlink()
    wrong = replace(attempt(0, 7.0), commit="f" * 40)
    keeper.memory = replace(keeper.memory, episodes=9, board=Board().take([wrong], Direction.MAXIMIZE))
    keeper.save()
    setting.run(lambda *_: (), steps=1)
    assert keeper.memory.episodes == 9
    assert keeper.memory.board.best[""].score == 1.0


def test_the_own_result_is_taken_in_before_anything_is_asked(setting):
    trial = Trial(title="try 2", family="rows", start=0, before=1.0, expected=2.0)
    setting.keeper.memory = replace(setting.keeper.memory, pending=trial)
    setting.store.publish(attempt(2, 2.0))
    seen: list[Situation] = []

    def look(situation: Situation, event: Event) -> tuple[Call, ...]:
        seen.append(situation)
        return ()

    setting.run(look, prompt="## Heartbeat: reflect (id h1)\n\nx\n", steps=1)
    assert seen[0].memory.pending is None
    assert [(t.number, t.score) for t in seen[0].memory.trials] == [(2, 2.0)]
    assert setting.keeper.memory.credit["rows"].wins == 1.0


def test_an_agent_that_does_not_share_looks_at_nobody(setting):
    for number in (1, 2):
        setting.store.publish(attempt(number, float(number)))
    setting.run(lambda *_: (), steps=1)
    assert set(setting.keeper.memory.board.best) == {"", "agent-1", "agent-2"}
    alone = setting.clone.parent / "alone"
    create(alone)
    (setting.clone / ".shared").unlink()
    (setting.clone / ".shared").symlink_to(alone)
    around = Surroundings(setting.clone.parents[2], "agent-1", setting.clone, setting.state, Direction.MAXIMIZE)
    assert set(around.update(Board()).best) == {"", "agent-1"}


@pytest.mark.parametrize(
    "wrong",
    [[], {"seconds": 0}, {"seconds": "5"}, {"seconds": True}, {"steps": float("nan")}, {"brain": 3}, {"x": 1}],
)
def test_wrong_options_are_refused(wrong):
    with pytest.raises(ValueError):
        Options.read(wrong)
    assert Options.read({"seconds": 2}).seconds == 2


def test_lines_are_whole_and_a_reader_that_is_gone_is_no_reason_to_stop(tmp_path):
    with (tmp_path / "out").open("w+b") as file:
        Output(file.fileno()).text("line\nbreak \ud800 " + "x" * 50_000)
        file.seek(0)
        (line,) = file.read().splitlines()
        assert json.loads(line)["reply"].startswith("line\nbreak")
    read, write = os.pipe()
    os.close(read)
    Output(write).beat("search", "x")
    os.close(write)


@pytest.mark.parametrize("action", ["open('saved', 'w').close()", "1 / 0"])
def test_an_interrupt_acts_and_ends_whatever_happens(tmp_path, action):
    """Once, within a busy loop, without unwinding; SIGINT is heeded even where it was ignored at birth."""
    program = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from coral.native.interrupt import on_interrupt\n"
        f"on_interrupt(lambda: {action}, lambda: open('second', 'w').close())\n"
        "print('ready', flush=True)\ntry:\n    while True:\n        pass\nfinally:\n    open('unwound', 'w')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == (["saved", "second"] if "saved" in action else [])


def test_figures_show_what_differs():
    assert both(2.5421, 2.5567) == "2.5421 -> 2.5567"
    assert both(2.63598308, 2.63598309) == "2.6359830800 -> 2.6359830900"
    assert both(None, 1.0) == "no score -> 1.0000"
    assert difference(1.0, 1.5) == "+0.5000"
    assert difference(None, 1.5) == ""
    assert gain(1.0, 1.5, Direction.MINIMIZE) == -0.5
    assert numbers([3, 5, 7]) == "#3, #5 and #7"
    assert numbers([]) == ""
    assert decimals(1.0) == decimals(1.0, 1.0, None) == 4
    assert score(1e300) == "1e+300"
