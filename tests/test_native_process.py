"""The native agent as a real process: interrupted at any moment, killed at any moment, it goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import psutil
import pytest
from real_runs import Run, wait_until

from attempts.record import Attempt, Kind, Verdict
from attempts.store import Store
from coral.config.load import load
from coral.native.memory import Memory, Work
from coral.native.snapshots import Keeper
from coral.runs.create import prepare
from coral.runtimes.model import Ending, LaunchSummary
from coral.runtimes.native import Native
from workspace.knowledge import list_notes
from workspace.layout import Layout

pytestmark = pytest.mark.slow
WITHIN = 120.0  # seconds: what takes longer has failed, on any machine

CHECK = """import json, math, pathlib
def check(folder):
    rows = json.loads(pathlib.Path(folder, "points.json").read_text())["points"]
    places = [(row["x"], row["y"]) for row in rows]
    energy = sum(1 / (1e-3 + math.dist(a, b)) for k, a in enumerate(places) for b in places[:k])
    return {"score": energy, "slack": [gap for x, y in places for gap in (x, 1 - x, y, 1 - y)]}
"""
GRADE = """import json, math
def grade(workspace):
    rows = json.loads((workspace / "points.json").read_text())["points"]
    places = [(row["x"], row["y"]) for row in rows]
    assert all(0 <= v <= 1 for place in places for v in place)
    return sum(1 / (1e-3 + math.dist(a, b)) for k, a in enumerate(places) for b in places[:k])
"""
POINTS = {"points": [{"x": round(0.2 + 0.07 * k, 2), "y": round(0.3 + 0.01 * k * k, 2)} for k in range(8)]}


def write_task(folder: Path, check: str = CHECK, extra: str = "") -> Path:
    """Eight points that repel each other in a box."""
    (folder / "seed").mkdir(parents=True)
    (folder / "seed" / "points.json").write_text(json.dumps(POINTS, indent=1))
    (folder / "seed" / "check.py").write_text(check)
    (folder / "grade.py").write_text(GRADE)
    line = "  check: check.py:check\n" if check else ""
    (folder / "task.yaml").write_text(
        f"task:\n  name: points\n  description: Spread the points.\n  editable: [points.json]\n{line}"
        "grader:\n  entry: grade.py:grade\n  direction: minimize\n"
        "run:\n  interrupt_grace: 1\n  terminate_grace: 0.5\n  backoff: 0.1\n" + extra
    )
    return folder


class Agent:
    """One agent of a run without a supervisor: what it hands in stays in its inbox."""

    def __init__(self, task: Path, runs: Path) -> None:
        self.layout: Layout = prepare(load(task, ["agents.count=1"]), runs, lambda _: None)
        self.clone, self.state = self.layout.clone("agent-1"), self.layout.state("agent-1")
        self.started: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        prompt: str = "",
        *,
        resume: bool = True,
        session: str = "s-1",
        check: str = "check.py:check",
        **options: object,
    ) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-P", "-m", "coral.native", "--session", session, "--state", str(self.state)]
        argv += ["--resume"] if resume else []
        argv += ["--check", check] if check else []
        argv += ["--editable", "points.json", "--direction", "minimize", "--seed", "7"]
        argv += ["--options", json.dumps({"seconds": 0.5, **options})]
        environment = {**os.environ, "CORAL_RUN": str(self.layout.root), "CORAL_AGENT": "agent-1"}
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            argv, cwd=self.clone, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(prompt.encode())
        process.stdin.close()
        process.stdin = None
        self.started.append(process)
        return process

    def work(self) -> Work | None:
        """The best candidate of a running search, as far as it is saved."""
        keeper = Keeper.resume(self.state, "s-1")
        return keeper.memory.work if keeper is not None else None

    def memory(self) -> Memory:
        keeper = Keeper.resume(self.state, "s-1")
        assert keeper is not None
        assert not keeper.spoiled
        return keeper.memory

    def inbox(self) -> list[dict[str, object]]:
        return [json.loads(path.read_bytes()) for _, _, path in Store(self.layout.attempts).inbox()]

    def grade(self) -> None:
        """Publish a score for whatever was handed in, as a supervisor would; each a little better than the last."""
        store = Store(self.layout.attempts)
        for name, id, path in store.inbox():
            handed_in, number = store.read_submission(name, path), store.numbers()[-1] + 1
            store.publish(
                Attempt(
                    number=number,
                    agent=name,
                    kind=Kind.REAL,
                    commit=handed_in.commit,
                    tree=handed_in.tree,
                    parent="",
                    title=handed_in.title,
                    submission=id,
                    submitted_at=handed_in.submitted_at,
                    published_at=handed_in.submitted_at,
                    order=number,
                    verdict=Verdict.IMPROVED,
                    score=100.0 - number,
                )
            )
            store.reply(name, id, {"attempt": number, "published": True, "heartbeats": [], "inline": []})
            store.clear(name, id)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    made: list[Agent] = []

    def begin(check: str = CHECK) -> Agent:
        made.append(Agent(write_task(tmp_path / "task", check), tmp_path / "runs"))
        return made[-1]

    yield begin
    for agent in made:
        agent.end()


def lines(output: bytes) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


def children_of(agent: Agent) -> list[str]:
    """The command lines of what is alive of the agent's, told by the run's folder in them."""
    lines = []
    for process in psutil.process_iter():
        try:
            words = " ".join(process.cmdline())
        except psutil.Error:
            continue
        if str(agent.layout.root) in words:
            lines.append(words)
    return lines


def test_a_session_that_is_not_there_is_said(make):
    agent = make()
    process = agent.start(session="never")
    output, errors = process.communicate(timeout=WITHIN)
    assert b"no such session" in errors
    assert output == b""
    assert Native({}).judge(process.returncode, LaunchSummary(stderr=errors.decode())) is Ending.UNKNOWN_SESSION


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"seconds": "long"}, "seconds must be a number"),
        ({"secs": 1}, "no option 'secs'"),
        ({"brain": "llm"}, "no brain 'llm'"),
        ({"session": "../x"}, "no session id"),
    ],
)
def test_what_cannot_work_is_refused_for_good(make, arguments, said):
    process = make().start(resume=False, **arguments)
    output, errors = process.communicate(timeout=WITHIN)
    assert said in errors.decode()
    assert said in output.decode()
    assert Native({}).judge(process.returncode, LaunchSummary(output=True, stderr=errors.decode())) is Ending.TERMINAL


def test_files_without_numbers_are_refused(make):
    agent = make()
    (agent.clone / "points.json").write_text('"none"')
    process = agent.start(resume=False)
    _, errors = process.communicate(timeout=WITHIN)
    assert b"no number and no choice" in errors
    assert process.returncode == 2


def test_what_it_prints_is_what_the_runtime_reads(make):
    agent = make()
    process = agent.start("## Heartbeat: checkpoint (id h1)\n\nLook.\n", resume=False, steps=4)
    output, errors = process.communicate(timeout=WITHIN)
    assert errors == b""
    signs = [sign for line in output.splitlines() for sign in Native({}).read(line)]
    assert signs[0].session == "s-1"
    assert any(sign.phase == "search" and sign.progress is not None for sign in signs)
    assert any(sign.phase == "submit" for sign in signs)
    assert any(sign.reply.endswith("HEARTBEAT_OK") for sign in signs)
    assert signs[-1].ended
    assert agent.inbox()[0]["title"].startswith("descent from #0: ")


def seconds_of(process: subprocess.Popen[bytes]) -> float:
    """How long a launch takes here until it ends by itself, or a few seconds: its moments come with the machine."""
    began = time.monotonic()
    process.communicate(timeout=WITHIN)
    return min(time.monotonic() - began, 3.0)


def test_an_interrupt_at_any_moment_loses_nothing(make):
    """Each launch is cut off a little later than the one before: in the imports, a search, a hand-in, a wait."""
    agent = make()
    whole = seconds_of(agent.start(resume=False, steps=1))
    before = agent.memory()
    for k in count():
        if k >= 24 and before.episodes > 3 and len(before.trials) > 1:
            break
        process = agent.start(f"## Heartbeat: reflect (id h{k})\n\nThink.\n", seconds=0.3)
        time.sleep(whole * k / 20)  # the moment under test, not a wait for something
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=WITHIN)
        said = LaunchSummary(output=bool(output), stderr=errors.decode())
        given_up = process.returncode == 1 and b"too many failures" in output  # nobody grades here
        assert given_up or Native({}).judge(process.returncode, said) is Ending.INTERRUPTED, (k, errors)
        lines(output)
        after = agent.memory()
        assert after.launches - before.launches in (0, 1)
        assert after.episodes >= before.episodes
        assert set(before.answered) <= set(after.answered)
        assert after.trials[: len(before.trials)] == before.trials
        # What was found or handed in is still to be followed up: it is never simply gone.
        if before.work is not None or before.pending is not None:
            assert after.work is not None or after.pending is not None or len(after.trials) > len(before.trials)
        before = after
        agent.grade()
    assert len({trial.number for trial in before.trials}) == len(before.trials)
    wait_until(lambda: not children_of(agent), WITHIN, "the end of all children")


def test_a_kill_at_any_moment_leaves_a_memory(make):
    agent = make()
    whole = seconds_of(agent.start(resume=False, steps=1))
    before = agent.memory()
    for k in count():
        if k >= 12 and before.launches > 5:
            break
        process = agent.start()
        time.sleep(whole * k / 10)  # the moment under test
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=WITHIN)
        after = agent.memory()
        assert after.launches >= before.launches
        assert after.episodes >= before.episodes
        before = after
        agent.grade()


def test_the_best_of_an_interrupted_search_is_handed_in(make):
    agent = make()
    process = agent.start(resume=False, seconds=600)  # its end is not waited for
    wait_until(agent.work, WITHIN, "a better candidate")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WITHIN)
    work = agent.memory().work
    assert work is not None
    process = agent.start(seconds=600)
    (handed_in,) = wait_until(agent.inbox, WITHIN, "a submission")
    assert handed_in["title"] == work.trial.title
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=WITHIN)
    pending = agent.memory().pending
    assert pending is not None
    assert pending.title == work.trial.title
    assert (agent.clone / "points.json").read_text() == work.texts["points.json"]


def test_a_check_that_hangs_holds_no_interrupt_up(make):
    agent = make("def check(folder):\n    open('hung', 'w').close()\n    while True:\n        pass\n")
    process = agent.start(resume=False, check_seconds=600)
    wait_until((agent.state / "scratch" / "hung").exists, WITHIN, "the check")
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=WITHIN)  # a fifth of what the check may take
    assert process.returncode == 130
    wait_until(lambda: not children_of(agent), WITHIN, "the end of the check")


def test_a_check_of_no_use_is_done_without(make):
    agent = make("raise RuntimeError('no such library')\n")
    process = agent.start(resume=False)
    (handed_in,) = wait_until(agent.inbox, WITHIN, "a submission")
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=WITHIN)
    assert "step" in str(handed_in["title"])
    assert "no such library" in output.decode()


def test_a_spoiled_memory_is_told_and_survived(make):
    agent = make()
    agent.start(resume=False, steps=1).communicate(timeout=WITHIN)
    newest = sorted((agent.state / "sessions" / "s-1").glob("memory-*.json"))[-1]
    newest.write_bytes(newest.read_bytes()[:100])
    output, errors = agent.start(steps=1).communicate(timeout=WITHIN)
    assert "cannot be read" in output.decode()
    assert errors == b""
    assert agent.memory().launches >= 1


def test_a_heartbeat_is_answered_once_however_often_it_is_sent(make):
    agent = make()
    prompt = "## Heartbeat: checkpoint (id h9)\n\nLook.\n"
    first, _ = agent.start(prompt, resume=False, steps=1).communicate(timeout=WITHIN)
    again, _ = agent.start(prompt, steps=1).communicate(timeout=WITHIN)
    assert b"HEARTBEAT_OK" in first
    assert b"HEARTBEAT_OK" not in again


def test_nobody_to_grade_is_no_reason_to_spin(make):
    """Without a supervisor it says so, a few times, and ends as failed: the launch is somebody else's to repeat."""
    agent = make()
    process = agent.start(resume=False, seconds=0.2)
    output, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 1
    assert "nobody seems to grade" in output.decode()
    assert len(agent.inbox()) == 1


@pytest.mark.timeout(400)
@pytest.mark.parametrize("check", [True, False])
def test_a_real_task_gets_better_with_and_without_a_check(tmp_path, check):
    """A real supervisor; without a check each candidate is an attempt, and some of them are better than the seed."""
    extra = "agents:\n  count: 2\n  runtime: native\n  options: {seconds: 0.3}\n"
    run = Run(write_task(tmp_path / "task", CHECK if check else "", extra), tmp_path / "runs")
    try:
        run.supervise()
        seed = Store(run.layout.attempts).read(0).score
        assert seed is not None

        def better() -> bool:
            scores = [each.score for each in run.attempts() if each.score is not None]
            return len(scores) >= 6 and min(scores) < seed - (20 if check else 1e-3)

        wait_until(better, what="a better score")
        wait_until(lambda: list_notes(run.layout.shared), WITHIN, "a note")
        run.stop()
        graded = [each for each in run.attempts() if each.score is not None or each.verdict == "failed"]
        assert all(each.title for each in graded)
        if check:
            assert [each for each in graded if each.verdict == "failed"] == []
        assert run.left() == []
    finally:
        run.end()
