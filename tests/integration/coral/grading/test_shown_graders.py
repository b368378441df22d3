"""The graders that the documents show, by the supervisor's own way to grade: each gives its seed a score."""

import re
from pathlib import Path

import pytest
from pages import ROOT, blocks, write_files

from coral.config.load import Config, load
from coral.grading.once import grade_once
from coral.grading.result import GradeResult

SOLUTION = "def solve(numbers):\n    return sorted(numbers)\n"
GRADERS = [block for block in blocks([ROOT / "docs/graders.md"]) if block.kind == "python"]
EXPECTED = (2.0, 1.0, 1.0)  # the error of a guess of 3 where 5 is hidden; a constant; a list that is sorted

OUR_OWN = {"CORAL_LAUNCH", "CORAL_RUN", "CORAL_SEAL"}  # by which we find processes and sandboxes; for no grader


@pytest.mark.parametrize(("block", "score"), list(zip(GRADERS, EXPECTED, strict=True)))
def test_a_grader_on_the_page_of_graders_scores(tmp_path: Path, block, score: float) -> None:
    task = tmp_path / "task"
    (task / "seed").mkdir(parents=True)
    (task / "grade.py").write_text(block.text)
    (task / "hidden.json").write_text("5")
    (task / "seed" / "guess.txt").write_text("3\n")
    (task / "seed" / "solution.py").write_text(SOLUTION)
    grader = "grader: {entry: grade.py:grade, private: [hidden.json], args: {folds: 5}}"
    (task / "task.yaml").write_text(f"task: {{name: t, description: d}}\n{grader}\n")
    (tmp_path / "grade").mkdir()
    graded = grade_once(load(task), tmp_path / "grade")
    assert (graded.score, graded.reason) == (score, "")


@pytest.mark.parametrize(("guess", "score", "says"), [("3\n", 2.0, "too small"), ("5.5", 0.5, "too large")])
def test_the_command_on_the_page_of_graders_scores(tmp_path: Path, guess: str, score: float, says: str) -> None:
    graded = grade_once(command_task(tmp_path, guess, 0o755), tmp_path / "grade")
    assert (graded.score, graded.feedback, graded.reason) == (score, says, "")


@pytest.mark.parametrize("guess", ["", "five", "1.2.3", '1"'])
def test_the_command_on_the_page_of_graders_refuses_what_is_no_number(tmp_path: Path, guess: str) -> None:
    graded = grade_once(command_task(tmp_path, guess, 0o755), tmp_path / "grade")
    assert (graded.score, graded.reason) == (None, "guess.txt must hold a number, such as 4.5")


def test_a_command_that_is_not_executable_is_told_what_is_missing(tmp_path: Path) -> None:
    graded = grade_once(command_task(tmp_path, "3", 0o644), tmp_path / "grade")
    assert "exit code 126: a program may not be executed; is `chmod +x` missing?" in graded.reason


def command_task(tmp_path: Path, guess: str, mode: int) -> Config:
    """The task with the settings and the script that the page shows for a command."""
    shown = blocks([ROOT / "docs/graders.md"])
    (script,) = (block for block in shown if block.kind == "bash")
    (grader,) = (block for block in shown if block.kind == "yaml" and "command:" in block.text)
    (tmp_path / "task" / "seed").mkdir(parents=True)
    (tmp_path / "task" / "seed" / "guess.txt").write_text(guess)
    (tmp_path / "task" / "hidden.json").write_text("5")
    (tmp_path / "task" / "task.yaml").write_text(f"task: {{name: t, description: d}}\n{grader.text}")
    (tmp_path / "task" / "grade.sh").write_text(script.text)
    (tmp_path / "task" / "grade.sh").chmod(mode)
    (tmp_path / "grade").mkdir()
    return load(tmp_path / "task")


def test_the_task_of_four_agents_grades_its_repository_on_a_closed_channel(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "grade").mkdir()
    config = load(tmp_path / "faster")
    graded = grade_once(config, tmp_path / "grade")
    assert graded.score is not None, graded.reason
    assert graded.metrics["seconds"] > 0
    assert graded.channel == "closed"
    assert (config.agents.runtime, config.agents.count, config.budget.money) == ("claude", 4, 20)


def table_of(heading: str) -> set[str]:
    """The names in the first column of the table below a heading."""
    part = (ROOT / "docs/graders.md").read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return {name for row in re.findall(r"^\| (`.*?) \| ", part, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)}


def graded_by(tmp_path: Path, grader: str, files: dict[str, str]) -> GradeResult:
    (tmp_path / "task" / "seed").mkdir(parents=True)
    (tmp_path / "task" / "seed" / "x").touch()
    (tmp_path / "task" / "task.yaml").write_text(f"task: {{name: t, description: d}}\ngrader: {grader}\n")
    for name, text in files.items():
        (tmp_path / "task" / name).write_text(text)
    (tmp_path / "grade").mkdir()
    return grade_once(load(tmp_path / "task"), tmp_path / "grade")


def test_the_page_names_every_parameter_of_a_function(tmp_path: Path) -> None:
    text = "def grade(workspace, **given):\n    return {'score': 1, 'feedback': ' '.join(given)}\n"
    graded = graded_by(tmp_path, "{entry: grade.py:grade}", {"grade.py": text})
    assert set(graded.feedback.split()) == {name for name in table_of("A function") if name.isidentifier()}


def test_the_page_names_every_variable_of_a_command(tmp_path: Path) -> None:
    text = """import json, os
names = [name for name in os.environ if name.startswith("CORAL_")]
json.dump({"score": 1, "feedback": " ".join(names)}, open(os.environ["CORAL_RESULT"], "w"))
"""
    graded = graded_by(tmp_path, "{command: python3 grade.py}", {"grade.py": text})
    named = {name for name in table_of("A command") if name.startswith("CORAL_")}
    assert set(graded.feedback.split()) - OUR_OWN == named
