"""The graders that the documents show, by the supervisor's own way to grade: each gives its seed a score."""

from pathlib import Path

import pytest
from pages import ROOT, blocks, write_files

from coral.config.load import load
from coral.grading.once import grade_once

SOLUTION = "def solve(numbers):\n    return sorted(numbers)\n"
GRADERS = [block for block in blocks([ROOT / "docs/graders.md"]) if block.kind == "python"]
EXPECTED = (2.0, 1.0, 1.0)  # the error of a guess of 3 where 5 is hidden; a constant; a list that is sorted


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


def test_the_task_of_four_agents_grades_its_repository_on_a_closed_channel(tmp_path: Path) -> None:
    write_files(tmp_path)
    (tmp_path / "grade").mkdir()
    config = load(tmp_path / "faster")
    graded = grade_once(config, tmp_path / "grade")
    assert graded.score is not None, graded.reason
    assert graded.metrics["seconds"] > 0
    assert graded.channel == "closed"
    assert (config.agents.runtime, config.agents.count, config.budget.money) == ("claude", 4, 20)
