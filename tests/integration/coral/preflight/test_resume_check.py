"""A run that is used up is not resumed in silence: what ended it is said, and the command that would go on."""

from dataclasses import replace
from pathlib import Path

import pytest
from real_runs import TRY, Run, wait_until
from sample import submission

from attempts.store import Store
from coral.cli.commands.start import watch
from coral.cli.run_data import send_request
from coral.config.load import load_frozen
from coral.fleet.events import Moment
from coral.fleet.reasons import Budget, BudgetKey, Reason, ReasonKind, RunEnd, RunEndKind
from coral.fleet.run_state import AttemptStep, PendingAttempt
from coral.journal import Journal
from coral.preflight.resume_check import ends_at_once
from coral.supervisor.lock import hold_lock, holder
from workspace.layout import Layout

EVER_THE_SAME = "def grade(workspace):\n    return 1.0\n"
FOREVER = [{"repeat": {"steps": TRY, "times": 1000}}]


@pytest.fixture
def used_up(start, operators_shell: None) -> Run:
    """Two agents with three attempts between them, none better than the seed."""
    run = start(FOREVER, grade=EVER_THE_SAME, overrides=("agents.count=2", "budget.attempts=3"))
    run.wait_for_end()
    return run


def test_a_used_up_run_is_resumed_only_with_a_larger_budget(used_up: Run, coral, monkeypatch) -> None:
    name, layout = used_up.layout.root.name, used_up.layout
    monkeypatch.chdir(layout.root)
    before = (layout.task_file.read_bytes(), layout.log.read_bytes(), layout.status.read_bytes())

    def refusal(*words: str) -> tuple[str, str]:
        code, out, err = coral("resume", "-i", "go on", *words)
        assert (code, out) == (1, "")
        said, hint = err.splitlines()
        return said.removeprefix(f"coral: cannot resume {name}: "), hint.partition("resume ")[2]

    for words, said, hint in (
        ((), "the budget of 3 attempts is used up", "budget.attempts=6` continues it"),
        (("--detach",), "the budget of 3 attempts is used up", "budget.attempts=6` continues it"),
        # As much more as it takes, of everything that is in the way; what else was asked for stays.
        (("budget.attempts=1",), "the budget of 1 attempt is used up", "budget.attempts=4` continues it"),
        (
            ("agents.stall=700", "budget.hours=0.00000000001"),
            "the budget of 3 attempts is used up",
            "agents.stall=700 budget.attempts=6 budget.hours=",
        ),
        (
            ("budget.attempts=9", "budget.plateau=2"),
            "a plateau is reached: 2 attempts in a row did not improve the fleet's best",
            "budget.attempts=9 budget.plateau=4` continues it",
        ),
        (
            ("budget.attempts=9", "budget.target=1"),
            "the target of 1 is reached: 1 by #0",
            "budget.attempts=9 budget.target=null` continues it",
        ),
    ):
        told = refusal(*words)
        assert (told[0], told[1].startswith(hint)) == (said, True), told
    assert (layout.task_file.read_bytes(), layout.log.read_bytes(), layout.status.read_bytes()) == before
    assert not list(layout.requests_of("operator").glob("*.json"))


def test_the_suggested_command_goes_on(used_up: Run, coral) -> None:
    layout = used_up.layout
    assert coral("resume", "--run", str(layout.root), "budget.attempts=6", "--detach")[0] == 0
    wait_until(lambda: holder(layout.lock) is None, what="the end of the run")
    assert len(Store(layout.attempts).numbers()) == 1 + 6


@pytest.mark.parametrize("before", ["budget.none=true", "budget.attempts=400"])
def test_a_budget_that_was_set_while_it_ran_is_named_too(
    before: str, tmp_path: Path, start, coral, operators_shell: None
) -> None:
    is_set = tmp_path / "is-set"
    script = f"until [ -e {is_set} ]; do sleep 0.05; done; date +%s%N > x.txt; coral eval -m again; sleep 600\n"
    run = start(script, grade=EVER_THE_SAME, overrides=("agents.count=1", before))
    where = ("--run", str(run.layout.root))
    assert coral("set", *where, "budget.attempts=2")[0] == 0
    is_set.touch()
    run.wait_for_end()
    ended = ends_at_once(run.layout, load_frozen(run.layout.task_file))
    assert ended is not None
    assert ended.overrides == ("budget.attempts=4",)
    assert ends_at_once(run.layout, load_frozen(run.layout.task_file, ended.overrides)) is None


def test_the_reasons_of_retired_agents_are_given(start) -> None:
    run = start(FOREVER, overrides=("agents.count=2", "budget.per_agent.attempts=2"))
    run.wait_for_end()
    end = ends_at_once(run.layout, load_frozen(run.layout.task_file))
    assert end.end == RunEnd(RunEndKind.ALL_RETIRED)
    assert set(end.agents) == {Reason(ReasonKind.OWN_BUDGET, budget=Budget(BudgetKey.ATTEMPTS, 2))}
    assert end.overrides == ("budget.per_agent.attempts=4",)
    assert ends_at_once(run.layout, load_frozen(run.layout.task_file, end.overrides)) is None


def test_where_the_operator_has_retired_all_another_agent_goes_on(start, coral, operators_shell: None) -> None:
    run = start(FOREVER, overrides=("agents.count=1",))
    where = ("--run", str(run.layout.root))
    assert coral("agent", "retire", "agent-1", *where)[0] == 0
    run.wait_for_end()
    code, _, told = coral("resume", *where)
    assert code == 1
    assert "every agent has retired: the operator retired it" in told
    assert "raise agents.count to add another" in told
    assert ends_at_once(run.layout, load_frozen(run.layout.task_file, ("agents.count=2",))) is None


def test_a_killed_run_is_supervised_though_it_is_used_up(start) -> None:
    run = start([*TRY, "hang"])
    wait_until(lambda: 1 in Store(run.layout.attempts).numbers(), what="an attempt")
    run.kill()
    assert ends_at_once(run.layout, load_frozen(run.layout.task_file, ("budget.attempts=1",))) is None


def test_a_run_that_was_stopped_goes_on(start) -> None:
    run = start(FOREVER)
    wait_until(lambda: 1 in Store(run.layout.attempts).numbers(), what="an attempt")
    run.stop()
    assert ends_at_once(run.layout, load_frozen(run.layout.task_file)) is None


def test_a_missing_record_is_written_though_the_run_is_used_up(used_up: Run, coral) -> None:
    layout = used_up.layout
    path = layout.attempts / "000003.json"
    record = path.read_bytes()
    forget_that_it_was_published(layout, 3)
    path.unlink()
    assert ends_at_once(layout, load_frozen(layout.task_file)) is None
    assert coral("resume", "--run", str(layout.root), "--detach", "--yes")[0] == 0  # it was changed: by this test
    wait_until(lambda: holder(layout.lock) is None, what="the end of the run")
    assert path.read_bytes() == record
    assert coral("resume", "--run", str(layout.root))[0] == 1


def forget_that_it_was_published(layout: Layout, number: int) -> None:
    """As the journal ends where the disk was full until the run had ended."""
    attempt = Store(layout.attempts).read(number)
    made = submission(attempt.agent, id=attempt.submission, commit=attempt.commit, tree=attempt.tree)
    settled = PendingAttempt(number=number, submission=made, step=AttemptStep.SETTLED, attempt=attempt)
    journal = Journal(layout.journal)
    memory, now = journal.recovered, Moment(run_time=journal.recovered.clock, wall_time=journal.recovered.wall)
    folder = layout.root.stat()
    journal.open_supervision(memory.rules, now, (folder.st_dev, folder.st_ino))
    journal.record(now, [], [], memory.fleet, replace(memory.fleet, pending={number: settled}))
    journal.close()


@pytest.mark.parametrize("how", ["--plain", "--detach"])
def test_a_refused_resume_leaves_no_message_and_takes_nothing_back(used_up: Run, coral, monkeypatch, how: str) -> None:
    """Another `coral resume` was a moment earlier, and `coral stop` has asked its supervisor to stop."""
    layout = used_up.layout
    asked = send_request.send(layout, "operator", {"type": "stop"})

    def watched(*given: object) -> int:
        with hold_lock(layout.lock):
            return watch(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("coral.cli.commands.resume.watch", watched)
    words = ("resume", "--run", str(layout.root), "budget.attempts=6", "-i", "go on", how)
    code, _, err = coral(*words)
    assert (code, "supervise" in err) == (1, True)
    assert [path.stem for path in layout.requests_of("operator").glob("*.json")] == [asked]
