"""pytest as a grader: what the conftest.py of a candidate does to it, and not to the grader of docs/trust.md."""

import re
from pathlib import Path

import pytest
from files import write_files
from levels import params

from coral.config.load import load
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from workspace.seal import Level

LEVELS = params(*Level)
PAGE = Path(__file__).parents[4] / "docs" / "trust.md"
NAIVE = """
import re, shutil, subprocess, sys

def grade(workspace, private):
    shutil.copytree(private / "tests", workspace / "tests")
    line = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = subprocess.run(line, cwd=workspace, capture_output=True, text=True)
    return sum(map(int, re.findall("([0-9]+) passed", done.stdout)))
"""
NAIVE_TEST = "import solution\n\ndef test_it_sorts():\n    assert solution.solve([3, 1, 2]) == [1, 2, 3]\n"
LIAR = """
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    found = yield
    found.get_result().outcome = "passed"
"""
PLANTED = {
    "seed/conftest.py": LIAR,
    "seed/pytest.ini": "[pytest]\naddopts = -p liar\n",
    "seed/liar.py": LIAR,
    "seed/sitecustomize.py": "import sys\nsys.path.insert(0, '.')\n",
}


def shown() -> tuple[str, str]:
    """The grader and the test of the page."""
    section = PAGE.read_text().partition("## Tests as a grader")[2].partition("\n## ")[0]
    grader, test = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return grader, test


def graded(tmp_path: Path, grader: str, test: str, solution: str, planted: dict[str, str], level: str) -> GradeResult:
    files = {"grade.py": grader, "tests/test_solution.py": test, "seed/solution.py": solution, **planted}
    files["task.yaml"] = "task: {name: t, description: d}\ngrader: {entry: grade.py:grade, private: [tests]}\n"
    write_files(tmp_path / "task", files).chmod(0o700)
    config = load(tmp_path / "task", [f"workspace.seal={level}"])
    return grade_once(config, tmp_path / "work")


@pytest.mark.parametrize("level", LEVELS)
def test_a_conftest_turns_every_failure_into_a_success_and_the_channel_is_open(tmp_path: Path, level: Level) -> None:
    result = graded(tmp_path, NAIVE, NAIVE_TEST, "def solve(x): return x\n", PLANTED, level)
    assert (result.score, result.channel) == (1.0, "open"), result


@pytest.mark.parametrize("level", LEVELS[:-1])
@pytest.mark.parametrize(("solution", "score"), [("def solve(x): return sorted(x)\n", 1.0), ("solve = list\n", 0.0)])
def test_the_grader_of_the_page_loads_none_of_it(tmp_path: Path, level: Level, solution: str, score: float) -> None:
    result = graded(tmp_path, *shown(), solution, PLANTED, level)
    assert (result.score, result.channel) == (score, "closed"), result.output
