"""SIGINT, SIGTERM and ^C, once and twice, in the middle of `start`, `resume`, `stop` and `eval`: nothing is left
running, nothing half-made, no commit without a submission and no two submissions of one.

To look everywhere: `MOMENTS=1000 pytest -o timeout=0 tests/end_to_end/test_signals.py`.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from real_runs import TRY, Run, wait_until, write_task

from attempts.store import Store
from coral.cli.run_data import send_request
from coral.config.load import load
from coral.journal.fold import has_begun, has_ended
from coral.runs.create import create_run
from coral.supervisor.lock import holder
from workspace.layout import OPERATOR, Layout, runs_under
from workspace.submit import _Clone

pytestmark = pytest.mark.slow

MOMENTS = int(os.environ.get("MOMENTS", "1"))
NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Nursery:
    """Runs commands that get signals. `cases` draws moments from all that a command comes to without one."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.said = base / "said"
        self._chance = random.Random(1)
        self._server = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).parents[1] / "support" / "signalled.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def run(self, argv: list[str], cwd: Path, env: dict[str, str] | None = None, **moment: Any) -> dict[str, Any]:
        order = {"at": "", "number": 0, "group": False, "again": None, **moment}
        self.said.unlink(missing_ok=True)
        order |= {"argv": argv, "cwd": str(cwd), "env": env or {}, "said": str(self.said)}
        print(json.dumps(order), file=self._server.stdin, flush=True)
        done: dict[str, Any] = json.loads(self._server.stdout.readline())
        said = self.said.read_text()
        assert "Traceback" not in said, f"{moment}\n{said}"
        assert done["status"] in (0, 1, 2, 130), f"{moment}: {done['status']}\n{said}"
        return done

    def cases(self, places: list[str], count: int, always: str = "") -> Iterator[dict[str, Any]]:
        # Before a command has begun, a signal ends it at once.
        places = list(dict.fromkeys(places))
        begins = [number for number, place in enumerate(places) if "_let_all_signals" in place][-1]
        places = [place for place in places[begins + 1 :] if place != "!"]
        drawn = self._chance.sample(places, min(count * MOMENTS, len(places)))
        for place in dict.fromkeys([place for place in places if always and place.endswith(always)] + drawn):
            again = self._chance.choice([None, None, 0.0, self._chance.random() / 5])
            number, group = self._chance.choice(NUMBERS), self._chance.random() < 0.5
            yield {"at": place, "number": number, "group": group, "again": again}

    def close(self) -> None:
        with self._server:
            self._server.kill()


@pytest.fixture
def nursery(tmp_path) -> Iterator[Nursery]:
    made = Nursery(tmp_path)
    yield made
    made.close()
    for pid in strays(tmp_path):
        with contextlib.suppress(ProcessLookupError):  # it has ended meanwhile
            os.kill(pid, signal.SIGKILL)


def strays(base: Path) -> list[int]:
    """The living processes that have to do with this folder."""
    found, mark = [], os.fsencode(base)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if b") Z " in (entry / "stat").read_bytes():
                    continue
                told = [(entry / "cmdline").read_bytes(), (entry / "environ").read_bytes(), (entry / "cwd").readlink()]
            except OSError:
                continue
            if any(mark in os.fsencode(text) for text in told):
                found.append(int(entry.name))
    return found


def assert_over(base: Path, case: object) -> list[Layout]:
    """Nothing runs, and each run that is there began and ended in order. The runs."""
    wait_until(lambda: not strays(base), what=f"the end of everything after {case}")
    runs = runs_under(base / "runs")
    for layout in runs:
        assert holder(layout.lock) is None
        assert has_begun(layout), case
        assert has_ended(layout), case
    if not runs:
        assert not (base / "runs").exists(), case
    return runs


def clear(base: Path) -> None:
    shutil.rmtree(base / "runs", ignore_errors=True)


@pytest.mark.parametrize(("flag", "count"), [("--plain", 4), ("--detach", 4)])
def test_a_start_leaves_a_run_that_ended_in_order_or_none(nursery: Nursery, tmp_path, flag: str, count: int):
    base = tmp_path / "here"
    write_task(base / "task", [*TRY, "hang"])
    argv = ["start", str(base / "task"), flag, "budget.attempts=1"]
    places = nursery.run(argv, base)["places"]
    wait_until(lambda: has_ended(runs_under(base / "runs")[0]), what="the end of the run")
    for case in nursery.cases(places, count):
        wait_until(lambda: not strays(base))
        clear(base)
        done = nursery.run(argv, base, **case)
        if flag == "--detach" and "supervised by process" in nursery.said.read_text():
            assert runs_under(base / "runs")
            continue  # the command had done its work, and said so
        assert done["status"] != 1, case
        assert_over(base, case)


@pytest.fixture
def made(tmp_path) -> Layout:
    """A run that is made and has not begun, to be copied."""
    task = write_task(tmp_path / "task", [*TRY, "hang"])
    return create_run(load(task, ["budget.attempts=1"]), tmp_path / "made", lambda _: None)


def copy(made: Layout, base: Path) -> Layout:
    clear(base)
    shutil.copytree(made.root, base / "runs" / "number" / made.root.name, symlinks=True)
    return runs_under(base / "runs")[0]


def test_a_resume_goes_on_or_ends_in_order(nursery: Nursery, made: Layout, tmp_path) -> None:
    base = tmp_path / "here"
    argv = ["resume", "--plain", "-i", "go on"]
    places = nursery.run(argv, copy(made, base).root)["places"]
    for case in nursery.cases(places, 3):
        layout = copy(made, base)
        nursery.run(argv, layout.root, **case)
        wait_until(lambda: not strays(base), what=f"the end of everything after {case}")
        assert holder(layout.lock) is None
        assert not has_begun(layout) or has_ended(layout), case
        assert not list(layout.requests_of("operator").glob(".*")), case


def test_a_stop_stops_or_has_done_nothing_and_can_be_said_again(nursery: Nursery, tmp_path) -> None:
    task = write_task(tmp_path / "task", ["hang"])
    run = Run(task, tmp_path / "runs").supervise()
    argv = ["stop", "--run", str(run.layout.root)]
    try:
        wait_until(lambda: run.left(), what="an agent")
        places = nursery.run(argv, tmp_path)["places"]
        for case in nursery.cases(places, 2):
            run.wait_for_end()
            # As a resume does: a stop that came after the end is still there.
            send_request.take_back(run.layout, OPERATOR, "stop")
            run.supervise()
            wait_until(lambda: run.left(), what="an agent")
            nursery.run(argv, tmp_path, **case)
            assert not list(run.layout.requests_of("operator").glob(".*")), case
            nursery.run(argv, tmp_path)
            assert has_ended(run.layout), case
            assert run.left() == [], case
    finally:
        run.end()


def test_an_eval_hands_in_what_it_committed_once(nursery: Nursery, made: Layout, tmp_path) -> None:
    base = tmp_path / "here"
    layout = copy(made, base)
    environment = {"CORAL_RUN": str(layout.root), "CORAL_AGENT": "agent-1"}
    argv = ["eval", "-m", "a try", "--timeout", "0.05"]
    (layout.clone("agent-1") / "x.txt").write_text("1")
    places = nursery.run(argv, layout.clone("agent-1"), environment)["places"]
    for n, case in enumerate(nursery.cases(places, 8, "_put_new")):
        layout = copy(made, base)
        clone = layout.clone("agent-1")
        (clone / "x.txt").write_text(str(n + 2))
        done = nursery.run(argv, clone, environment, **case)
        wait_until(lambda: not strays(base), what=f"the end of everything after {case}")
        handed = commits(layout)
        head = _Clone(clone, "agent-1").head()
        assert len(handed) <= 1, case
        assert head.commit == (handed[0] if handed else (layout.private / "seed").read_text()), case
        assert done["status"] not in (0, 1), case
        # Said again, it is handed in if it was not, and refused if it was.
        again = nursery.run(argv, clone, environment)
        assert again["status"] == (1 if handed else 2), (case, nursery.said.read_text())
        assert len(commits(layout)) == 1
        assert _Clone(clone, "agent-1").head().commit == commits(layout)[0]
        assert not list((layout.attempts / "inbox" / "agent-1").glob(".*")), case
        assert {path.name for path in clone.glob(".git/*.lock")} == {"coral.lock"}, case


def commits(layout: Layout) -> list[str]:
    store = Store(layout.attempts)
    return [store.read_submission(agent, path).commit for agent, _, path in store.inbox(100, None)]
