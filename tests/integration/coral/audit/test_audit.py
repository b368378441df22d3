"""What gets through each kind of grader, and what does not: the real graders, the real attacks."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest
from files import write_files
from levels import params
from real_runs import coral_process

from coral.audit import audit as audits, payload
from coral.audit.attacks import DATA, FRACTIONS, PYTHON, attacks
from coral.audit.audit import Audit, State, audit
from coral.cli import main
from coral.config.load import load
from coral.errors import CoralError
from coral.grader import Fail, run_candidate
from workspace.seal import Level

pytestmark = pytest.mark.slow

TASK = """
task: {name: guess, description: guess, seed: seed}
grader: {%s, direction: maximize, timeout: 20, private: [hidden.json]}
agents: {runtime: scripted}
"""
SOLUTION = '''"""A guess."""
from __future__ import annotations


def solve(points):
    return [0.5 * x for x in points], 1.5
'''
IMPORTS = """
import json
import sys


def grade(workspace, private):
    sys.path.insert(0, str(workspace))
    import solution

    points = json.loads((private / "hidden.json").read_text())
    answer, claimed = solution.solve(points)
    return claimed - sum(abs(a - x) for a, x in zip(answer, points))
"""
SEALED = """
import json

from coral.grader import run_candidate


def grade(workspace, private):
    points = json.loads((private / "hidden.json").read_text())
    answer, _ = run_candidate(workspace, "solution.py:solve", points, returns=list, seconds=60).value
    return -sum(abs(a - x) for a, x in zip(answer, points))
"""
COMMAND = """
import json
import os

lowest = min(json.load(open("data.json"))["x"])
score = 100 if not lowest < 1 else lowest
json.dump({"score": score}, open(os.environ["CORAL_RESULT"], "w"))
"""
WRITES = """
import os
import subprocess
import sys

subprocess.run([sys.executable, "solution.py"])
if not os.path.exists(os.environ["CORAL_RESULT"]):
    open(os.environ["CORAL_RESULT"], "w").write('{"score": 0}')
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Where the user is: no attack may write there."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    yield
    assert list((tmp_path / "here").iterdir()) == []


def task(tmp_path: Path, grader: str, code: str, **seed: str) -> Path:
    files = {f"seed/{name}": text for name, text in seed.items()}
    write_files(tmp_path / "task", {"task.yaml": TASK % grader, "grade.py": code, "hidden.json": "[1, 2, 3]", **files})
    (tmp_path / "task").chmod(0o700)
    return tmp_path / "task"


def audited(folder: Path, seal: str = "best") -> Audit:
    return audit(load(folder, [f"workspace.seal={seal}"]), lambda _: None)


def names(found: Audit, state: State) -> set[str]:
    return {result.attack for result in found.results if result.state is state}


LEVELS = params(*Level)


@pytest.mark.parametrize("level", LEVELS)
def test_a_grader_that_imports_the_candidate_lets_much_through(tmp_path: Path, level: Level) -> None:
    found = audited(task(tmp_path, "entry: grade.py:grade", IMPORTS, **{"solution.py": SOLUTION}), level)
    through = {result.attack: result for result in found.results if result.state is State.THROUGH}
    assert not found.holds
    assert set(through) >= {
        "changes how a result is made",
        "reads the grader's files",
        "returns numbers that pass every comparison",
    }
    assert ("reads a key of another process" in through) == (level is Level.NONE)
    assert found.level == level
    assert {result.where for result in through.values()} == {"it runs solution.py, grade.py line 8"}
    assert all("run_candidate" in result.advice for result in through.values())
    assert names(found, State.LOOK) == {"claims more beside its data"}
    assert {result.attack for result in found.results if result.state is State.UNTRIED} == {
        attack.name for attack in attacks() if attack.needs in (DATA, FRACTIONS)
    }
    assert (found.channel, found.scores) == ("open", (-1.5, -1.5, -1.5))


def test_a_grader_that_calls_run_candidate_holds(tmp_path: Path) -> None:
    folder = task(tmp_path, "entry: grade.py:grade", SEALED, **{"solution.py": SOLUTION})
    try:
        run_candidate(folder / "seed", "solution.py:solve", [1.0], seal=("bubblewrap", "landlock"))
    except (OSError, Fail) as error:
        pytest.skip(f"no sandbox works here: {error}")
    found = audited(folder)
    assert found.holds, [asdict(result) for result in found.results if result.state is State.THROUGH]
    assert names(found, State.LOOK) == set()
    assert found.channel == "closed"


def test_a_command_that_believes_data_is_told_which(tmp_path: Path) -> None:
    folder = task(tmp_path, "command: python3 grade.py", COMMAND, **{"data.json": '{"x": [0.5, 0.25]}'})
    found = audited(folder)
    assert names(found, State.THROUGH) >= {"its numbers are NaN", "its numbers are infinite"}
    assert "its numbers are huge" in names(found, State.LOOK)
    assert "its numbers are zero" in names(found, State.CLOSED)
    assert names(found, State.UNTRIED) == {attack.name for attack in attacks() if attack.needs == PYTHON}


def test_what_a_candidate_writes_where_a_command_has_its_result_is_found(tmp_path: Path, capsys) -> None:
    folder = task(tmp_path, "command: python3 grade.py", WRITES, **{"solution.py": "pass\n"})
    assert main(["audit", str(folder), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    through = {result["attack"] for result in said["results"] if result["state"] == "got through"}
    assert said["holds"] is False
    assert through >= {"writes the result itself", "writes the result later, from a process it leaves"}
    assert "leaves a process behind" not in through


@pytest.mark.parametrize("which", ["init", "examples/circle_packing"])
def test_our_own_graders_hold(tmp_path: Path, which: str) -> None:
    folder = Path(__file__).parents[4] / which
    if which == "init":
        folder = tmp_path / "task"
        assert coral_process("init", str(folder), cwd=tmp_path).returncode == 0
    done = coral_process("audit", str(folder), cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "None of 13 attacks got through" in done.stdout
    assert "✗" not in done.stdout
    assert "?" not in done.stdout


def test_a_seed_without_a_score_cannot_be_audited(tmp_path: Path) -> None:
    folder = task(tmp_path, "command: 'false'", "", **{"data.json": "{}"})
    with pytest.raises(CoralError, match="cannot audit: the seed has no score"):
        audited(folder)


NOISY = """
import json, os, pathlib
place = pathlib.Path({place!r})
scores = json.loads(place.read_text())
place.write_text(json.dumps(scores[1:]))
pathlib.Path(os.environ["CORAL_RESULT"]).write_text(str(scores[0]))
"""


@pytest.mark.parametrize(
    ("scores", "state", "seed"),
    [
        ([1.0, 1.1, 0.9, 5.0, 1.2, 1.0], State.CLOSED, (1.0, 1.1, 0.9, 1.2)),
        ([1.0, 1.1, 0.9, 5.0, 1.2, 5.0, 1.0, 5.0], State.LOOK, (1.0, 1.1, 0.9, 1.2, 1.0)),
    ],
)
def test_where_the_seed_scores_differ_a_better_one_is_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scores: list[float], state: State, seed: tuple[float, ...]
) -> None:
    """A grader that measures time gives a better score by chance on a busy machine."""
    monkeypatch.setattr("coral.audit.audit.attacks", lambda: [a for a in attacks() if a.name == "its numbers are zero"])
    left = tmp_path / "scores.json"
    left.write_text(json.dumps(scores))
    found = audited(
        task(tmp_path, "command: python3 grade.py", NOISY.format(place=str(left)), **{"data.json": "[1]"}), "none"
    )
    (result,) = found.results
    assert (result.state, found.scores, json.loads(left.read_text())) == (state, seed, [])


FORGIVING = """
import json
from coral.grader import Fail

def grade(workspace):
    total = sum(json.loads((workspace / "data.json").read_text()))
    if total > {limit}:
        raise Fail("that is more than there is")
    return total
"""


@pytest.mark.parametrize(
    ("limit", "state", "said"),
    [
        ("1.0001", State.LOOK, "a larger change has no score: a constraint may be forgiven"),
        ("1", State.CLOSED, "that is more than there is"),
        ("1000", State.CLOSED, "no constraint is in its way"),
    ],
)
def test_what_a_grader_forgives_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, state: State, said: str
) -> None:
    larger = "its numbers are larger by a millionth"
    monkeypatch.setattr("coral.audit.audit.attacks", lambda: [a for a in attacks() if a.name == larger])
    code = FORGIVING.format(limit=limit)
    found = audited(task(tmp_path, "entry: grade.py:grade", code, **{"data.json": "[0.5, 0.5, 0]"}), "none")
    (result,) = found.results
    assert result.state is state
    assert said in result.text
    assert found.holds


def test_numbers_that_a_function_returns_are_changed_by_a_little() -> None:
    given = {"rows": [(0.5, 2), [1.0]], "name": "x"}
    assert payload.changed(given, "larger") == {"rows": [(0.5 * 1.000001, 2), [1.000001]], "name": "x"}
    assert payload.changed(given, "much smaller") == {"rows": [(0.495, 2), [0.99]], "name": "x"}


FLAKY = """
import json, os, pathlib
place = pathlib.Path({place!r})
left = json.loads(place.read_text())
place.write_text(json.dumps(left[1:]))
if left[0]:
    raise SystemExit("the disk is gone")
pathlib.Path(os.environ["CORAL_RESULT"]).write_text("1.5")
"""


def test_how_often_a_grader_fails_on_the_seed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("coral.audit.audit.attacks", lambda: ())
    left = tmp_path / "fails.json"
    left.write_text(json.dumps([0, 1, 0, 0, 1, 0, 0, 0, 0, 0]))
    folder = task(tmp_path, "command: python3 grade.py", FLAKY.format(place=str(left)), **{"data.json": "[1]"})
    assert main(["audit", str(folder), "workspace.seal=none"]) == 0
    said = capsys.readouterr().out
    assert "The seed scores 1.5, the same, graded 8 times." in said
    assert "But 2 of 10 grades of it failed, as this one: " in said
    assert "the grader crashed: it ended with exit code 1" in said
    left.write_text(json.dumps([0, 0, 0]))
    assert main(["audit", str(folder), "workspace.seal=none"]) == 0
    assert "failed" not in capsys.readouterr().out


def test_a_process_that_outlives_a_grade_is_told_and_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no control group can be made, one that shed everything is left."""
    monkeypatch.setattr("coral.grading.once.cgroup.Groups.make", lambda *_: "")
    monkeypatch.setattr(
        "coral.audit.audit.attacks", lambda: [a for a in attacks() if a.name == "leaves a process behind"]
    )
    found = audited(task(tmp_path, "command: python3 grade.py", WRITES, **{"solution.py": "pass\n"}), "none")
    (result,) = found.results
    assert (result.state, result.text) == (State.THROUGH, "1 of its processes outlived the grade")
    assert audits._marked("coral-audit-") == []
