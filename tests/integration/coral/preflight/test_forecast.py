"""What a run will cost is said before it starts, and asked for above a limit that the task sets."""

import json
from pathlib import Path

import pytest
from files import write_files

from coral.cli import main
from coral.config.load import Config, load
from coral.errors import CoralError
from coral.preflight.forecast import Forecast, forecast
from coral.views.format import money

TASK = "task: {name: t, description: d}\ngrader: {command: 'true'}\nagents: {runtime: %s, count: 2}\nbudget: %s\n"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "runs"


def task(folder: Path, budget: str, runtime: str = "claude") -> Config:
    write_files(folder / "task", {"task.yaml": TASK % (runtime, budget), "seed/a.txt": "1"})
    return load(folder / "task")


def ran(runs: Path, name: str, dollars: float | None, attempts: int, seconds: float, *programs: str) -> None:
    agents = [{"runtime": program, "model": ""} for program in programs or ("claude", "claude")]
    spent = {"money": dollars, "tokens": 100_000 * attempts}
    status = {"spent": spent, "attempts": attempts, "clock": seconds, "agents": agents}
    write_files(runs / "t" / name, {"status.json": json.dumps(status)})


def test_agents_that_cost_nothing_have_no_forecast(tmp_path: Path, runs: Path) -> None:
    assert forecast(task(tmp_path, "{hours: 1}", "native"), runs) is None


def test_the_last_runs_of_the_task_say_what_an_attempt_and_an_hour_cost(tmp_path: Path, runs: Path) -> None:
    ran(runs, "20260101-a", 3.0, 10, 1800.0)
    ran(runs, "20260102-b", 5.0, 10, 5400.0)
    # None of these says anything: other programs, no cost, no status that can be read.
    ran(runs, "20260103-c", 90.0, 10, 1800.0, "codex")
    ran(runs, "20260104-d", None, 10, 1800.0)
    write_files(runs / "t/20260105-e", {"status.json": "{"})
    ran(runs, "20260105-g", 9.0, 1, 60.0)
    status = runs / "t/20260105-g/status.json"
    status.write_text(status.read_text().replace('"model": ""', '"model": "larger"'))
    (runs / "t/20260106-f").mkdir()
    of_attempts = forecast(task(tmp_path, "{attempts: 40}"), runs)
    assert of_attempts == Forecast(16.0, "about $16.00: 40 attempts at $0.40, as in the last 2 runs of this task")
    # Two agents for an hour and a half and a half: four hours of work for eight dollars.
    of_hours = forecast(task(tmp_path, "{hours: 3, attempts: 400}"), runs)
    assert of_hours == Forecast(12.0, "about $12.00: 3 hours of 2 agents at $2.00, as in the last 2 runs of this task")
    assert forecast(task(tmp_path, "{hours: 3, money: 5}"), runs) == Forecast(5.0, "at most $5.00: budget.money")
    own = forecast(task(tmp_path, "{per_agent: {attempts: 3}}"), runs)
    assert own == Forecast(pytest.approx(2.4), "about $2.40: 6 attempts at $0.40, as in the last 2 runs of this task")  # type: ignore[arg-type]
    of_tokens = forecast(task(tmp_path, "{tokens: 3000000, hours: 300}"), runs)
    said = "about $12.00: 3.00M tokens at $4.00 a million, as in the last 2 runs of this task"
    assert of_tokens == Forecast(pytest.approx(12.0), said)  # type: ignore[arg-type]


def test_what_is_known_only_in_part_says_nothing(tmp_path: Path, runs: Path) -> None:
    """A run whose money is a lower bound, about money; one whose tokens are, about what a token costs."""
    for name, dollars, unknown in (("20260101-a", 4.0, "tokens"), ("20260102-b", 90.0, "money")):
        ran(runs, name, dollars, 10, 1800.0)
        status = runs / "t" / name / "status.json"
        status.write_text(json.dumps({**json.loads(status.read_text()), f"{unknown}_unknown_of": ["agent-1"]}))
    of_attempts = forecast(task(tmp_path, "{attempts: 40}"), runs)
    assert of_attempts == Forecast(16.0, "about $16.00: 40 attempts at $0.40, as in the last run of this task")
    of_tokens = forecast(task(tmp_path, "{tokens: 3000000}"), runs)
    assert of_tokens is not None
    assert of_tokens.text.endswith(", a rough guess")


def test_without_a_run_a_guess_is_called_one_and_the_unknown_unknown(tmp_path: Path, runs: Path) -> None:
    guess = forecast(task(tmp_path, "{attempts: 10}"), runs)
    assert guess is not None
    assert guess.text.endswith(", a rough guess")
    assert guess.dollars is not None
    # A guess of both: an attempt is taken to use 36,000 tokens.
    by_tokens = forecast(task(tmp_path, "{per_agent: {tokens: 180000}}"), runs)
    assert by_tokens is not None
    assert by_tokens.dollars == pytest.approx(guess.dollars)
    assert by_tokens.text.startswith(f"about {money(guess.dollars)}: 360.0k tokens at ")
    assert by_tokens.text.endswith(" a million, a rough guess")
    unknown = Forecast(None, "nobody knows what it will cost: no budget limits it in money")
    assert forecast(task(tmp_path, "{hours: 10}"), runs) == unknown


@pytest.mark.parametrize(("limit", "asked"), [("7", True), ("9", False)])
def test_a_start_above_the_tasks_limit_needs_a_yes(
    tmp_path: Path, capsys, monkeypatch, limit: str, asked: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coral.runs.create.create_run", refuse)
    task(tmp_path, f"{{money: 8, ask_above: {limit}}}")
    assert main(["start", "task"]) == 1
    said = capsys.readouterr().err
    assert "coral: cost: at most $8.00: budget.money" in said
    assert ("it may cost more than budget.ask_above=7\n  add --yes to start it" in said) == asked
    assert ("the run begins" in said) != asked
    assert main(["start", "task", "--yes"]) == 1
    assert "the run begins" in capsys.readouterr().err


def refuse(*_: object) -> None:
    raise CoralError("the run begins", "in a test it ends here")


def test_who_sits_at_a_terminal_is_asked(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("coral.runs.create.create_run", refuse)
    task(tmp_path, "{hours: 8, ask_above: 7}")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for answer, begins in (("y\n", True), ("Yes\n", True), ("\n", False), ("no\n", False), ("", False)):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        assert main(["start", "task"]) == 1
        said = capsys.readouterr().err
        assert "that is more than budget.ask_above=7; start it? [y/N] " in said
        assert ("the run begins" in said) == begins


class Terminal:
    def __init__(self, answer: str) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.answer
