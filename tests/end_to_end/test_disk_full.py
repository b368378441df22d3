"""A disk that fills under a run that works, and one that is full or can only be read when a command begins."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from real_runs import Run, coral_process, heartbeats_in, tries, wait_until, write_task
from records import unreadable
from small_disk import Disk, QuotaDisk
from survival import assert_attempts_are_whole

from attempts.store import Store
from coral.cli import main
from workspace.hub import tree_of

pytestmark = [pytest.mark.slow, pytest.mark.small_disk, pytest.mark.timeout(400)]

# It tries the same again until it was handed in, and keeps on another disk what it was told: before it says the word
# that acknowledges it.
AGENT = """\
cat > "{notes}/$CORAL_AGENT-$(date +%s%N)"
echo here
n=0
while :; do
  n=$((n + 1))
  until echo "$(date +%s%N)" > x.txt; do sleep 0.05; done
  until coral eval -m "try $n" > "{notes}/.$CORAL_AGENT"; do
    [ $? -le 1 ] || break
    sleep 0.05
  done
done
"""
MEGABYTE = 1_000_000


@pytest.fixture
def begin(disk: Disk, start, tmp_path) -> Callable[..., Run]:
    """Make a run on the small disk; its task and what its agents note down lie elsewhere."""
    (tmp_path / "notes").mkdir()

    def begin(script: object, *overrides: str, **task: str) -> Run:
        if isinstance(script, str):
            script = script.replace("{notes}", str(tmp_path / "notes"))
        overrides = ("run.poll_seconds=0.3", *overrides)
        return start(script, overrides=overrides, supervise=False, runs=disk.root / "runs", **task)

    return begin


def is_clear(done: "subprocess.CompletedProcess[str]", about: str) -> bool:
    """Two lines, and no traceback."""
    said = done.stderr.strip().splitlines()
    return done.returncode == 1 and len(said) == 2 and said[0].startswith("coral: cannot ") and about in said[0]


def told(tmp_path: Path, agent: str) -> list[str]:
    """The ids of the reflections that an agent really received, in order."""
    prompts = sorted((tmp_path / "notes").glob(f"{agent}-*"))
    return [id for path in prompts for name, id in heartbeats_in(path.read_text()) if name == "reflect"]


def assert_nothing_is_lost(run: Run, tmp_path: Path) -> None:
    """What was accepted was graded, once; every reflection reached its agent, or is owed; nothing runs any more."""
    fleet = run.fleet()
    attempts = assert_attempts_are_whole(run, fleet, retries=True)
    assert {attempt.verdict.value for attempt in attempts} <= {"new best", "own best", "tied", "worse"}
    assert all(tree_of(run.layout.hub, attempt.commit) == attempt.tree for attempt in attempts)
    assert unreadable(Store(run.layout.attempts)) == []
    for agent in fleet.agents.values():
        mine = [attempt for attempt in attempts if attempt.agent == agent.name]
        owed = {message.id for message in agent.pending_messages if message.name == "reflect"}
        assert len(set(told(tmp_path, agent.name)) | owed) == len(mine)
    assert run.events("crashed") == []
    assert run.left() == []


def live_on(disk: Disk, polls: int) -> None:
    """So many polls of the supervisor, during which it can write nothing."""
    for _ in range(polls):
        before = time.monotonic()
        wait_until(lambda: time.monotonic() - before > 0.5)  # noqa: B023 - called at once
        assert disk.left < MEGABYTE or isinstance(disk, QuotaDisk)
        if not disk.is_readonly:
            disk.fill()


def test_a_full_disk_halts_what_is_new_and_costs_nothing_that_was_accepted(disk, begin, tmp_path) -> None:
    run = begin(AGENT, "agents.count=2", "grader.slots=2")
    run.supervise()
    run.wait_for_attempts(3)
    # First it runs short: that is said while it still can be.
    disk.fill(left=6 * MEGABYTE)
    wait_until(lambda: [event for event in run.events("alert") if "the disk is full" in event["text"]], what="an alert")
    disk.fill()
    shown = coral_process("status", "--run", str(run.layout.root), cwd=tmp_path)
    assert re.search(r"the disk is full: [0-9.]+ MB left; nothing new starts", " ".join(shown.stdout.split()))
    live_on(disk, polls=2)
    assert run.supervisor.poll() is None
    accepted = run.fleet().run.next_number
    disk.ease()
    run.wait_for_attempts(accepted + 2)
    assert [event for event in run.events("alert") if "the disk can be used again" in event["text"]]
    run.stop()
    assert_nothing_is_lost(run, tmp_path)


def test_a_disk_that_turns_readonly_under_a_run_and_back_costs_nothing_that_was_accepted(disk, begin, tmp_path) -> None:
    run = begin(AGENT, "agents.count=2", "grader.slots=2")
    run.supervise()
    run.wait_for_attempts(3)
    for full in (False, True):
        if full:
            disk.fill()
        disk.turn_readonly()
        if full:  # then what was decided is not written down either
            live_on(disk, polls=3)
        else:
            wait_until(lambda: run.fleet().run.disk_problem == "the disk can only be read", what="its notice")
        assert coral_process("tell", "hello", "--run", str(run.layout.root), cwd=tmp_path).returncode == 1
        assert run.supervisor.poll() is None
        accepted = run.fleet().run.next_number
        disk.turn_back()
        if full:
            disk.ease()
        run.wait_for_attempts(accepted + 2)
    alerts = [event["text"] for event in run.events("alert")]
    assert "nothing new is begun, until the disk can be used again: the disk can only be read" in alerts
    assert alerts.count("the disk can be used again; the run continues") == 2
    run.stop()
    assert_nothing_is_lost(run, tmp_path)


# The seed has a score. After that it fills the disk twice: without coming to a score, and with one.
FILLS = """\
import os, pathlib
turn = len(list(pathlib.Path({marks!r}).iterdir()))
pathlib.Path({marks!r}, str(turn)).touch()
if turn != 1:
    pathlib.Path(os.environ["CORAL_RESULT"]).write_text(f'{{{{"score": {{turn}}}}}}')
if turn:
    with open(os.environ["TMPDIR"] + "/large", "wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(1 << 20))
            except OSError:
                break
raise SystemExit(turn == 1)
"""


def test_what_a_grade_filled_the_disk_with_is_removed_and_what_it_came_to_is_kept(disk, begin, tmp_path) -> None:
    (tmp_path / "marks").mkdir()
    grade = FILLS.format(marks=str(tmp_path / "marks"))
    run = begin([*tries(1), "hang"], command=f"{sys.executable} grade.py", grade=grade)
    run.supervise()
    (attempt,) = run.wait_for_attempts(1)
    assert (attempt.verdict.value, attempt.score) == ("new best", 2)
    assert len(list((tmp_path / "marks").iterdir())) == 3
    wait_until(lambda: disk.left > 30 * MEGABYTE, what="space")
    run.stop()
    assert [path.name for path in run.layout.grading(1).parent.iterdir() if path.name.startswith(".")] == []


def test_a_quota_that_an_agent_uses_up_halts_what_is_new_and_costs_nothing_that_was_accepted(
    quota, start, tmp_path
) -> None:
    (tmp_path / "notes").mkdir()
    script = AGENT.replace("{notes}", str(tmp_path / "notes"))
    overrides = ("run.poll_seconds=0.3", "agents.count=2", "grader.slots=2")
    run = start(script, overrides=overrides, supervise=False, runs=quota.root / "runs")
    run.supervise()
    run.wait_for_attempts(3)
    # With nothing left, the notice could not be written down either.
    quota.fill(left=MEGABYTE // 2)
    wait_until(lambda: run.fleet().run.disk_problem, what="its notice")
    quota.fill()
    live_on(quota, polls=2)
    assert run.supervisor.poll() is None
    accepted = run.fleet().run.next_number
    quota.ease()
    run.wait_for_attempts(accepted + 2)
    run.stop()
    assert_nothing_is_lost(run, tmp_path)


# Without a score, as often as it is graded; the seed has one. What fills the quota lies deep.
FILLS_ALWAYS = """\
import os, pathlib
if "fill" in pathlib.Path("x.txt").read_text():
    deep = pathlib.Path(os.environ["TMPDIR"], *"abcd")
    deep.mkdir(parents=True)
    with open(deep / "large", "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
pathlib.Path(os.environ["CORAL_RESULT"]).write_text('{"score": 1}')
"""


def test_a_candidate_that_uses_up_a_quota_has_failed_and_what_it_wrote_is_removed(quota, start, tmp_path) -> None:
    run = start(
        [{"edit": {"file": "x.txt", "content": "fill"}}, {"submit": "fills"}, "hang"],
        command=f"{sys.executable} grade.py",
        grade=FILLS_ALWAYS,
        overrides=("run.poll_seconds=0.3",),
        supervise=False,
        runs=quota.root / "runs",
    )
    run.supervise()
    (attempt,) = run.wait_for_attempts(1)
    assert attempt.verdict.value == "failed"
    assert "ended on a disk without room: the journal cannot be written: [Errno 122]" in attempt.reason
    # All of it is gone.
    wait_until(lambda: not list(run.layout.grading(1).rglob("large")), what="space")
    run.stop()


def test_a_run_on_a_full_disk_can_be_stopped_and_is_not_resumed(disk, begin, tmp_path, capsys) -> None:
    run = begin("echo here; exec sleep 300\n")
    run.supervise()
    wait_until(lambda: any(agent.has_output for agent in run.fleet().agents.values()), what="its first word")
    disk.fill()
    name = ("--run", str(run.layout.root))
    stopped = coral_process("stop", *name, cwd=tmp_path)
    assert stopped.returncode == 0, stopped.stderr
    assert run.left() == []
    for way in ([], ["--detach"]):
        assert main(["resume", *way, *name]) == 1
        assert "the disk is full: 0.0 MB left" in capsys.readouterr().err
    for command in (["log"], ["status"], ["show", "0"], ["notes"]):
        assert main([*command, *name]) == 0, command
    disk.ease()
    resumed = coral_process("resume", "--detach", *name, cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert coral_process("stop", *name, cwd=tmp_path).returncode == 0


def test_agents_of_a_dead_supervisor_are_ended_on_a_full_disk_too(disk, begin, tmp_path) -> None:
    run = begin("echo here; exec sleep 300\n")
    run.supervise()
    wait_until(lambda: any(agent.has_output for agent in run.fleet().agents.values()), what="its first word")
    run.kill()
    disk.fill()
    assert run.left()
    stopped = coral_process("stop", "--run", str(run.layout.root), cwd=tmp_path)
    assert stopped.returncode == 0, stopped.stderr


def test_a_start_on_a_full_disk_says_so_and_leaves_nothing(disk: Disk, tmp_path, capsys) -> None:
    task = write_task(tmp_path / "task", ["hang"])
    where = f"workspace.runs={disk.root / 'runs'}"
    disk.fill(left=MEGABYTE)
    before = sorted(disk.root.rglob("*"))
    for more in ([], ["--detach"]):
        assert main(["start", str(task), where, *more]) == 1
        first, *rest = capsys.readouterr().err.strip().splitlines()
        assert (first.endswith("runs: the disk is full: 1.0 MB left"), len(rest)) == (True, 1)
        assert sorted(disk.root.rglob("*")) == before
    disk.ease()
    disk.fill(left=20 * MEGABYTE)
    (task / "seed" / "large").write_bytes(os.urandom(30 * MEGABYTE))
    done = coral_process("start", str(task), where, cwd=tmp_path)
    assert done.returncode == 1
    assert re.search(r"No space left on device|Out of diskspace", done.stderr)
    assert done.stderr.endswith("\n  free some space; nothing was left behind\n")
    assert sorted(disk.root.rglob("*")) == before


def test_a_supervisor_that_finds_the_disk_full_never_began(disk: Disk, tmp_path, monkeypatch, capsys) -> None:
    from coral.runs import create

    task = write_task(tmp_path / "task", ["hang"])
    create_run = create.create_run

    def create_and_fill(*arguments: object) -> object:
        layout = create_run(*arguments)  # type: ignore[arg-type]
        disk.fill()
        return layout

    monkeypatch.setattr(create, "create_run", create_and_fill)
    monkeypatch.chdir(tmp_path)
    assert main(["start", str(task), f"workspace.runs={disk.root / 'runs'}", "--detach"]) == 1
    why = "coral: cannot supervise in the background: the disk is full: 0.0 MB left"
    assert capsys.readouterr().err.splitlines()[-2:] == [why, "  nothing was left behind"]
    assert [path.name for path in disk.root.iterdir()] == ["ballast"]


def test_an_eval_on_a_full_disk_says_so_and_commits_nothing_that_is_not_handed_in(disk, begin) -> None:
    run = begin(["hang"])
    clone = run.layout.clone("agent-1")
    git = ["git", "-C", str(clone)]

    def head() -> str:
        return subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout

    seed = head()
    (clone / "x.txt").write_text("1")
    # At every amount of space, from none at all to as much as is needed.
    for left in (0, *range(4096, 80_000, 12288)):
        (disk.root / "ballast").unlink(missing_ok=True)
        disk.fill(left=left)
        done = coral_process("eval", "--no-wait", "-m", "one", cwd=clone)
        handed_in = [json.loads(path.read_bytes())["commit"] for path in run.layout.attempts.glob("inbox/*/*.json")]
        assert head() == seed or head().strip() in handed_in
        assert len(handed_in) == len(set(handed_in))
        if done.returncode == 0:
            assert head().strip() in handed_in
            break
        assert done.stderr.startswith("coral: cannot "), done.stderr
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr
    else:
        pytest.fail("it was never handed in")


def test_on_a_disk_that_can_only_be_read_commands_look_or_say_so(disk, begin, tmp_path, monkeypatch) -> None:
    run = begin([{"edit": {"file": "x.txt", "content": "1"}}, {"submit": "one"}, "hang"])
    run.supervise()
    run.wait_for_attempts(1)
    run.stop()
    disk.make_readonly()
    name = ("--run", str(run.layout.root))
    monkeypatch.chdir(run.layout.root)
    assert main(["runs"]) == 0
    for command in (["log"], ["log", "--search", "one"], ["status"], ["show", "1"], ["notes"], ["replay"]):
        assert main([*command, *name]) == 0, command
    stopped = coral_process("stop", *name, cwd=tmp_path)
    assert (stopped.returncode, "is not running" in stopped.stdout) == (0, True)
    assert is_clear(coral_process("resume", *name, cwd=tmp_path), "can only be read")
    task = write_task(tmp_path / "another", ["hang"])
    assert is_clear(
        coral_process("start", str(task), f"workspace.runs={disk.root / 'runs'}", cwd=tmp_path), "can only be read"
    )
    tried = coral_process("eval", "-m", "two", cwd=run.layout.clone("agent-1"))
    assert tried.returncode == 1
    assert tried.stderr.startswith("coral: cannot "), tried.stderr
    assert is_clear(coral_process("tell", "hello", *name, cwd=tmp_path), "Read-only file system")
    disk.make_readonly(False)
    assert coral_process("eval", "--no-wait", "-m", "two", "--again", cwd=run.layout.clone("agent-1")).returncode == 0
