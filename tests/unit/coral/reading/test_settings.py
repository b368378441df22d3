"""The settings of a run: what differs from the defaults, and no secret."""

from pathlib import Path

from coral.config.load import load
from coral.reading.settings import HIDDEN, settings

TASK = """\
task: {name: fit, description: Fit., seed: seed}
grader: {entry: "grade.py:grade", args: {api_key: s3cret, depth: 4, deep: [{auth_token: s3cret}]}}
agents:
  assignments:
    - {count: 2, options: {seconds: 1.5, password: s3cret}}
    - {runtime: native, model: "", role: Tune.}
budget: {attempts: 7, tokens: 1000, per_agent: {attempts: 3}}
alerts: {to: ["https://hooks.example.org/s3cret"]}
heartbeats: [{name: redirect, stagnant: 8}, {name: checkpoint, enabled: false}, {name: reflect, every: 1}]
"""


def found(tmp_path: Path, *, defaults: bool = False) -> dict[str, str]:
    (tmp_path / "seed").mkdir()
    (tmp_path / "seed" / "x.json").write_text('{"a": 1.0}')
    (tmp_path / "grade.py").write_text("def grade(workspace):\n    return 1.0\n")
    (tmp_path / "task.yaml").write_text(TASK)
    return settings(load(tmp_path), defaults=defaults)


def test_only_what_is_not_at_its_default(tmp_path: Path) -> None:
    held = found(tmp_path)
    assert held["budget.attempts"] == "7"
    assert held["budget.per_agent.attempts"] == "3"
    assert held["agents.assignments.0.count"] == "2"
    assert held["agents.assignments.1.role"] == "Tune."
    assert held["heartbeats.redirect"] == "every 8 attempts in a row without improvement"
    assert held["heartbeats.checkpoint"] == "off"
    assert not {"heartbeats.consolidate", "heartbeats.reflect"} & held.keys()
    assert not {"budget.hours", "grader.timeout", "agents.assignments.1.runtime", "task.name"} & held.keys()


def test_no_secret_is_shown(tmp_path: Path) -> None:
    held = found(tmp_path)
    assert "s3cret" not in str(held)
    assert HIDDEN in held["grader.args"]
    assert '"depth": 4' in held["grader.args"]
    assert held["budget.tokens"] == "1000", "a number of tokens is no secret"


def test_all_of_them(tmp_path: Path) -> None:
    held = found(tmp_path, defaults=True)
    assert held["grader.timeout"] == "300.0"
    assert held["budget.hours"] == "null"
    assert "agents.count" not in held, "each assignment has its own"
    assert held["agents.assignments.1.count"] == "1"
    assert held["heartbeats.consolidate"] == "every 10 attempts of the fleet"
