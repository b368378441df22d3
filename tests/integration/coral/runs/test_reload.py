"""A task that has changed is staged, then installed: wholly or not at all, and as often as one likes."""

import contextlib
import errno
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from files import write_files

from attempts.record import Kind
from coral.agent_setup.roster import Roster
from coral.config.load import Config, load, load_frozen
from coral.errors import CoralError
from coral.fleet.events import Moment, TaskChanged
from coral.fleet.members import Member
from coral.journal import Journal, fold
from coral.preflight.resume_check import changes_since_supervised
from coral.preflight.task_changes import task_changes
from coral.runs import reload
from coral.runs.create import create_run
from coral.runs.prepare import context_of, latest_baseline, make_workspace
from coral.supervisor.loop import Supervisor
from workspace.git import Git
from workspace.layout import Layout

TASK = """\
task: {name: t, description: the old aim}
grader: {entry: "grade.py:grade", private: [data], noise: 0}
agents: {runtime: scripted, options: {script: [hang]}}
workspace: {seal: none}
"""
GRADE = "def grade(folder):\n    return float((folder / 'x.txt').read_text())\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files = {"task.yaml": TASK, "grade.py": GRADE, "data/hidden.csv": "1", "seed/x.txt": "1", "seed/AGENTS.md": "own"}
    return write_files(tmp_path / "task", files)


@pytest.fixture
def layout(folder: Path, tmp_path: Path) -> Layout:
    """A run that has begun and was stopped."""
    layout = create_run(load(folder, ("budget.attempts=3",)), tmp_path / "runs", lambda _: None)
    turn(layout)
    return layout


def turn(layout: Layout, change: TaskChanged | None = None) -> Supervisor:
    """The first turn of a supervisor that starts nobody."""
    supervisor = Supervisor(layout, layout.seed_commit.read_text(), None, change)
    supervisor._performer._starter.start_agent = lambda *_: None  # type: ignore[method-assign]
    supervisor._decide_and_perform(supervisor._first_events(now := supervisor._clock.now()), now)
    supervisor.close()
    return supervisor


def stage(layout: Layout, *overrides: str) -> TaskChanged:
    before = load_frozen(layout.task_file)
    config = load(before.path, (*before.overrides, *overrides))
    return reload.stage(layout, config, lambda _: None)


def content(layout: Layout) -> dict[str, bytes]:
    """What a supervisor and its graders read of the task."""
    parts = [layout.task_file, layout.task_source, layout.seed_commit, *layout.grader.rglob("*")]
    return {str(path.relative_to(layout.root)): path.read_bytes() for path in parts if path.is_file()}


def edit(folder: Path) -> None:
    (folder / "grade.py").write_text(GRADE.replace("float(", "10 * float("))
    (folder / "data" / "hidden.csv").write_text("2")
    (folder / "data" / "more.csv").write_text("3")
    (folder / "seed" / "x.txt").write_text("2")
    (folder / "task.yaml").write_text(TASK.replace("old aim", "new aim"))


def test_a_changed_task_is_taken_in_with_all_its_files_and_the_overrides_that_were_ever_given(layout, folder) -> None:
    edit(folder)
    old = layout.seed_commit.read_text()
    change = stage(layout, "budget.hours=2")
    assert change.baseline is not None
    assert (change.baseline.score, change.baseline.epoch, change.baseline.kind) == (20.0, 2, Kind.BASELINE)
    assert load_frozen(layout.task_file).task.description == "the old aim"
    assert reload.install(layout) == change
    config = load_frozen(layout.task_file)
    assert (config.task.description, config.budget.attempts, config.budget.hours) == ("the new aim", 3, 2.0)
    assert config.overrides == ("budget.attempts=3", "budget.hours=2")
    assert "10 *" in (layout.grader / "grade.py").read_text()
    assert (layout.grader / "data" / "hidden.csv").read_text() == "2"
    assert (layout.grader / "data" / "more.csv").read_text() == "3"
    assert layout.seed_commit.read_text() == change.baseline.commit != old
    assert Git(layout.hub).text("rev-parse", "main", "main^") == f"{change.baseline.commit}\n{old}"
    assert Git(layout.hub).text("show", "main:x.txt") == "2"
    assert task_changes(layout, config) == []
    assert layout.grader.stat().st_mode & 0o777 == 0o700


def test_the_new_seed_is_the_best_once_the_supervisor_has_begun(layout, folder) -> None:
    edit(folder)
    stage(layout)
    fleet = turn(layout, reload.install(layout))._fleet
    assert (fleet.run.epoch, fleet.run.best) == (2, 1)
    assert latest_baseline(layout).score == 20.0
    assert [message.name for message in fleet.agents["agent-1"].pending_messages] == ["changed"]


def test_agents_find_the_new_task_in_their_instructions_beside_the_text_of_the_seed(layout, folder) -> None:
    edit(folder)
    (folder / "seed" / "AGENTS.md").write_text("newer")
    (folder / "seed" / "look.py").write_text("def check(folder): return 1.0\n")
    task = folder / "task.yaml"
    task.write_text(task.read_text().replace("task: {", 'task: {check: "look.py:check", '))
    assert layout.check("agent-1").read_text() == ""
    stage(layout)
    reload.install(layout)
    file = Roster(load_frozen(layout.task_file)).runtime("agent-1").instruction_file
    text = (layout.clone("agent-1") / file).read_text()
    assert "the new aim" in text
    assert "old aim" not in text
    assert layout.check("agent-1").read_text() == "look.py:check"
    assert file != "AGENTS.md" or text.endswith("newer")
    # git is not to take it for a change of the agent's.
    clone = layout.clone("agent-1")
    assert Git(clone / ".git", GIT_WORK_TREE=clone).text("status", "--porcelain") == ""


def test_agents_that_the_operator_moved_or_added_find_the_new_task_where_their_programs_read_it(layout, folder) -> None:
    before = fold(layout.journal).fleet
    member, commit = Member(runtime="claude"), layout.seed_commit.read_text()
    config, baseline = load_frozen(layout.task_file), latest_baseline(layout)
    roster = Roster(config, {"agent-1": member, "agent-2": member})
    make_workspace(context_of(layout, config, roster, baseline), "agent-2", commit)
    run = replace(before.run, members={"agent-1": member, "agent-2": replace(member, added=True)})
    with contextlib.closing(Journal(layout.journal)) as journal:
        now = Moment(run_time=journal.recovered.clock, wall_time="2030-01-01T00:00:00Z")
        journal.record(now, [], (), before, replace(before, run=run))
    edit(folder)
    stage(layout)
    reload.install(layout)
    for agent in ("agent-1", "agent-2"):
        assert "the new aim" in (layout.clone(agent) / "CLAUDE.md").read_text()
    assert (layout.clone("agent-2") / "AGENTS.md").read_text() == "own"


def test_a_task_with_more_agents_makes_their_clones_from_the_new_seed(layout, folder) -> None:
    edit(folder)
    stage(layout, "agents.count=2")
    reload.install(layout)
    assert (layout.clone("agent-2") / "x.txt").read_text() == "2"
    assert list(turn(layout)._fleet.agents) == ["agent-1", "agent-2"]


@pytest.mark.parametrize(
    "override", ["agents.count=2", "budget.attempts=9", "grader.slots=2", "grader.noise=0.1", "task.tips=other",
                 "holdout.args={split: test}", "grader.ray.address=10.0.0.2:6379"]
)  # fmt: skip
def test_what_changes_no_score_begins_no_epoch(layout: Layout, override: str) -> None:
    assert stage(layout, override).baseline is None
    change = reload.install(layout)
    assert turn(layout, change)._fleet.run.epoch == 1


@pytest.mark.parametrize(
    "override", ["grader.args={a: 1}", "task.description=other", "grader.direction=minimize",
                 "grader.ray.environment={pip: [numpy]}"]
)  # fmt: skip
def test_what_may_change_a_score_begins_one(layout: Layout, override: str) -> None:
    change = stage(layout, override)
    assert change.baseline is not None
    assert change.baseline.commit == layout.seed_commit.read_text()


def test_heartbeats_that_the_task_has_changed_come_in_force(layout, folder) -> None:
    (folder / "task.yaml").write_text(f"{TASK}heartbeats: [{{name: redirect, stagnant: 9}}]\n")
    assert stage(layout).heartbeats
    fleet = turn(layout, reload.install(layout))._fleet
    assert "9 attempts" in next(held.when for held in fleet.heartbeats["agent-1"] if held.name == "redirect")


def test_a_checklist_that_changed_reaches_the_agents_and_one_that_did_not_stays_theirs(
    layout: Layout, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = layout.shared / "HEARTBEAT.md"
    shown.write_text("theirs")
    edit(folder)
    stage(layout)
    turn(layout, reload.install(layout))
    assert shown.read_text() == "theirs"
    (folder / "HEARTBEAT.md").write_text("new list")
    assert stage(layout).baseline is None
    with monkeypatch.context() as patch:
        dying(patch, reload, "place", 5)
        with pytest.raises(Died):
            reload.install(layout)
    reload.install(layout)
    assert shown.read_text() == layout.checklist.read_text() == "new list"


def test_an_interrupted_reload_is_completed_by_the_next_with_all_that_it_had_changed(layout, folder) -> None:
    edit(folder)
    (folder / "task.yaml").write_text(f"{TASK}heartbeats: [{{name: redirect, stagnant: 9}}]\n")
    stage(layout)
    reload.install(layout)  # and the process dies before the supervisor has begun
    again = stage(layout, "budget.hours=2")
    assert again.baseline is not None
    assert (again.baseline.epoch, again.heartbeats) == (2, True)
    assert reload.pending(layout) == again
    fleet = turn(layout, reload.install(layout))._fleet
    assert fleet.run.epoch == 2
    assert reload.pending(layout) is None
    # A third that is refused leaves what the second has staged.
    reload.discard(layout)
    stage(layout, "grader.args={a: 1}")
    first = reload.pending(layout)
    stage(layout, "grader.args={a: 2}")
    reload.withdraw(layout)
    assert reload.pending(layout) == first
    assert changes_since_supervised(layout) == []


def test_an_edit_of_the_seed_while_it_is_graded_is_a_change(layout, folder) -> None:
    edit(folder)
    slow = "def grade(folder):\n    open('%s', 'w').write('3')\n    return 1\n" % (folder / "seed" / "x.txt")
    (folder / "grade.py").write_text(slow)
    stage(layout)
    reload.install(layout)
    assert task_changes(layout, load_frozen(layout.task_file)) == ["seed/x.txt"]


def test_a_grader_that_is_the_same_is_not_touched(layout, folder) -> None:
    made = layout.grader.stat().st_ctime_ns
    stage(layout, "agents.count=2")
    reload.install(layout)
    assert layout.grader.stat().st_ctime_ns == made
    edit(folder)
    stage(layout)
    reload.install(layout)
    assert layout.grader.stat().st_ctime_ns > made


def test_what_a_grader_has_left_beside_its_files_is_no_change(layout, folder) -> None:
    (layout.grader / "cache.bin").write_text("1")
    (layout.grader / "data" / "__pycache__").mkdir()
    (layout.grader / "data" / "__pycache__" / "x.pyc").write_text("1")
    assert stage(layout, "agents.count=2").baseline is None
    (folder / "data" / "hidden.csv").unlink()
    (folder / "data" / "other.csv").write_text("1")
    assert stage(layout).baseline is not None


def test_the_instructions_name_the_number_that_the_new_seed_will_have(layout, folder) -> None:
    edit(folder)
    stage(layout)
    change = reload.install(layout)
    file = Roster(load_frozen(layout.task_file)).runtime("agent-1").instruction_file
    assert "attempt #1 and scores 20" in (layout.clone("agent-1") / file).read_text()
    assert turn(layout, change)._fleet.run.best == 1


def test_a_hold_out_that_is_new_is_copied_and_one_that_is_gone_is_removed(layout, folder) -> None:
    (folder / "task.yaml").write_text(f'{TASK}holdout: {{entry: "hold.py:grade"}}\n')
    (folder / "hold.py").write_text(GRADE)
    stage(layout)
    reload.install(layout)
    assert [path.name for path in layout.holdout.iterdir() if path.is_file()] == ["hold.py"]
    (folder / "hold.py").write_text(f"{GRADE}\n")
    assert task_changes(layout, load_frozen(layout.task_file)) == ["hold.py"]
    (folder / "task.yaml").write_text(TASK)
    stage(layout)
    reload.install(layout)
    assert not layout.holdout.exists()


def test_other_code_of_the_hold_out_begins_no_epoch_and_its_scores_are_made_anew(layout, folder) -> None:
    (folder / "task.yaml").write_text(f'{TASK}holdout: {{entry: "hold.py:grade"}}\n')
    (folder / "hold.py").write_text(GRADE)
    stage(layout)
    turn(layout, reload.install(layout))
    (folder / "hold.py").write_text(GRADE.replace("float(", "2 * float("))
    assert stage(layout) == TaskChanged(holdout=True)
    # What was only saved again is no change.
    reload.discard(layout)
    (folder / "hold.py").write_text(GRADE)
    assert stage(layout) == TaskChanged()


class Died(BaseException):
    """As kill -9 does, it is caught by nobody."""


def dying(monkeypatch: pytest.MonkeyPatch, holder: object, name: str, calls: int) -> None:
    """The process dies when this is called for the n-th time."""
    made, count = getattr(holder, name), [0]

    def die(*args: object, **given: object) -> object:
        count[0] += 1
        if count[0] == calls:
            raise Died
        return made(*args, **given)

    monkeypatch.setattr(holder, name, die)


def at_each_call(count: int) -> list[object]:
    """Return the numbers of the calls at which somebody dies; all but the first are slow together."""
    return [1, *(pytest.param(call, marks=pytest.mark.slow) for call in range(2, count + 1))]


@pytest.mark.parametrize("calls", at_each_call(4))
@pytest.mark.parametrize("name", ["copy_grader_files", "grade_seed", "write_json", "checklist"])
def test_who_dies_while_staging_leaves_the_run_with_the_old_task(
    layout: Layout, folder: Path, name: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(layout)
    edit(folder)
    with monkeypatch.context() as patch:
        dying(patch, reload, name, calls)
        try:
            stage(layout)
        except Died:
            assert reload.install(layout) is None
            assert content(layout) == before
            assert reload.pending(layout) is None
    stage(layout)
    assert reload.install(layout) is not None


@pytest.mark.parametrize("calls", at_each_call(3))
@pytest.mark.parametrize(
    ("holder", "name"),
    [(reload, "place"), (shutil, "rmtree"), (shutil, "copytree"), (reload.hub, "set_seed"), (reload, "add_agents"),
     (reload, "renew_instructions"), (shutil, "copyfile")],
)  # fmt: skip
def test_who_dies_while_installing_leaves_it_to_the_next(
    layout: Layout, folder: Path, holder: object, name: str, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(folder)
    change = stage(layout, "agents.count=2")
    with monkeypatch.context() as patch:
        dying(patch, holder, name, calls)
        with contextlib.suppress(Died):
            reload.install(layout)
    assert changes_since_supervised(layout) == []
    assert reload.install(layout) == change
    assert task_changes(layout, load_frozen(layout.task_file)) == []
    assert (layout.clone("agent-2") / "x.txt").read_text() == "2"
    # Between the journal and the end of what was staged: the epoch began already.
    assert turn(layout, change)._fleet.run.epoch == 2
    assert turn(layout, reload.install(layout))._fleet.run.epoch == 2
    assert turn(layout)._fleet.run.next_number == 2


def test_a_git_that_was_killed_does_not_keep_the_new_seed_out(layout: Layout, folder: Path) -> None:
    edit(folder)
    change = stage(layout)
    (layout.hub / "refs" / "heads" / "main.lock").touch()
    assert reload.install(layout) == change


def a_folder_of_that_name(layout: Layout) -> None:
    for path in (layout.clone("agent-1") / "AGENTS.md", layout.shared / "HEARTBEAT.md"):
        path.unlink()
        path.mkdir()


def a_spoiled_index(layout: Layout) -> None:
    (layout.clone("agent-1") / ".git" / "index").write_text("none")


def a_file_for_a_folder(layout: Layout) -> None:
    shutil.rmtree(layout.clone("agent-1") / ".git" / "info")
    (layout.clone("agent-1") / ".git" / "info").touch()


@pytest.mark.parametrize("spoil", [a_folder_of_that_name, a_spoiled_index, a_file_for_a_folder])
def test_no_agent_keeps_the_new_task_out(
    layout: Layout, folder: Path, spoil: Callable[[Layout], None], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(folder)
    (folder / "HEARTBEAT.md").write_text("new list")
    change = stage(layout)
    spoil(layout)
    assert reload.install(layout) == change
    assert "agents do not find all of the new task" in capsys.readouterr().err
    assert turn(layout, change)._fleet.run.epoch == 2


def test_a_full_disk_leaves_the_new_task_to_the_next(
    layout: Layout, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(folder)
    change = stage(layout)
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device")
        patch.setattr(reload, "renew_instructions", lambda *_: (_ for _ in ()).throw(full))
        with pytest.raises(OSError, match="No space"):
            reload.install(layout)
    assert reload.install(layout) == change


def test_a_task_with_other_ends_of_lines_is_taken_in_as_it_is(layout: Layout, folder: Path) -> None:
    for name, text in (("task.yaml", TASK), ("HEARTBEAT.md", "one\ntwo\n")):
        (folder / name).write_bytes(text.replace("\n", "\r\n").encode())
    stage(layout)
    reload.install(layout)
    assert changes_since_supervised(layout) == []
    turn(layout)
    assert task_changes(layout, load_frozen(layout.task_file)) == []


def broken_grader(folder: Path) -> None:
    (folder / "grade.py").write_text("def grade(folder):\n    return None\n")


def no_seed(folder: Path) -> None:
    shutil.rmtree(folder / "seed")
    (folder / "seed").mkdir()


def other_program(folder: Path) -> None:
    text = TASK.replace("runtime: scripted, options: {script: [hang]}", "runtime: native")
    (folder / "task.yaml").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (broken_grader, "cannot grade the seed"),
        (no_seed, "it has no files"),
        (other_program, "agent-1"),
    ],
)
def test_a_task_that_cannot_be_used_is_refused_and_the_old_one_stays(
    layout: Layout, folder: Path, spoil: Callable[[Path], None], message: str
) -> None:
    before = content(layout)
    spoil(folder)
    with pytest.raises(CoralError) as caught:
        stage(layout)
    assert message in str(caught.value)
    assert reload.install(layout) is None
    assert content(layout) == before


def test_a_run_keeps_the_overrides_of_each_resume(layout: Layout, folder: Path) -> None:
    config: Config = load_frozen(layout.task_file, ("budget.hours=1", "budget.hours=2"))
    assert config.overrides == ("budget.attempts=3", "budget.hours=1", "budget.hours=2")
    layout.task_file.write_text(config.text)
    assert load_frozen(layout.task_file) == config
