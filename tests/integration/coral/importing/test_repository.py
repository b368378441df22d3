"""`coral init --from`: a repository becomes a task, graded by its tests or by the number that a command prints."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from files import write_files

from coral.config.load import load
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from coral.importing.repository import look

Coral = Callable[..., tuple[int, str, str]]
LIBRARY = "def double(x):\n    return 2 * x\n"
TESTS = """
import pytest
from lib import double

def test_right(): assert double(2) == 4
def test_wrong(): assert double(2) == 5

@pytest.mark.skip
def test_skipped(): pass

@pytest.mark.parametrize("x", [1, 2])
def test_from_conftest(x, three): assert double(x) <= three + 1
"""
REPOSITORY = {
    "repo/src/lib.py": LIBRARY,
    "repo/tests/test_lib.py": TESTS,
    "repo/tests/conftest.py": "import pytest\n\n@pytest.fixture\ndef three(): return 3\n",
    "repo/bench.py": "import lib\nprint('rounds 3')\nprint('took', lib.double(4.25), 's')\nprint('done')\n",
    "repo/Makefile": "bench-all: x\n\ttrue\nbench:\n\ttrue\n",
}


def proposed(folder: Path, coral: Coral, *words: str, files: dict[str, str] = REPOSITORY) -> GradeResult:
    """The grade of the seed of the task that is proposed for this repository."""
    write_files(folder, files)
    code, _, err = coral("init", "--from", str(folder / "repo"), str(folder / "task"), "--yes", *words)
    assert (code, err) == (0, "")
    return grade_once(load(folder / "task"), folder / "work")


def test_it_finds_tests_benchmarks_and_targets(tmp_path) -> None:
    write_files(
        tmp_path, {**REPOSITORY, "repo/.venv/test_x.py": "", "repo/requirements.txt": "numpy>=2 # fast\n-r more\n"}
    )
    found = look(tmp_path / "repo")
    assert [one.command for one in found.proposals()] == ["python bench.py", "make bench", ""]
    assert ([path.as_posix() for path in found.tests], found.requires) == (["tests/test_lib.py"], ("numpy>=2",))


def test_a_benchmark_scores_the_last_number_that_it_prints_by_the_grader_s_own_copy(tmp_path, coral: Coral) -> None:
    result = proposed(tmp_path, coral)
    assert (result.outcome, result.score, result.channel) == ("scored", 8.5, "open"), result
    (tmp_path / "repo" / "bench.py").write_text("print(0)\n")
    shutil.rmtree(tmp_path / "work")
    assert grade_once(load(tmp_path / "task"), tmp_path / "work").score == 8.5
    assert load(tmp_path / "task").grader.direction == "minimize"


def test_a_command_that_fails_or_prints_no_number_has_failed(tmp_path, coral: Coral) -> None:
    result = proposed(tmp_path / "a", coral, "--command", "echo fast; exit 3", "--maximize")
    assert (result.outcome, result.reason) == ("failed", "the command ended with exit code 3")
    assert load(tmp_path / "a" / "task").grader.direction == "maximize"
    result = proposed(tmp_path / "b", coral, "--command", "echo fast")
    assert (result.outcome, result.reason) == ("failed", "the command printed no number")


def test_tests_score_the_share_that_passes_and_are_the_grader_s_own(tmp_path, coral: Coral) -> None:
    result = proposed(tmp_path, coral, "--tests")
    assert (result.outcome, result.score, result.metrics) == ("scored", 0.75, {"passed": 3, "tests": 4}), result
    assert "test_wrong" in result.feedback
    # A candidate's tests, settings and conftest.py count for nothing.
    write_files(
        tmp_path,
        {
            "repo/tests/test_lib.py": "def test_right(): pass\n",
            "repo/conftest.py": "import os\nos._exit(0)\n",
            "repo/pytest.ini": "[pytest]\naddopts = -k test_right\n",
        },
    )
    shutil.rmtree(tmp_path / "work")
    assert grade_once(load(tmp_path / "task"), tmp_path / "work").score == 0.75


def test_a_file_of_tests_that_cannot_be_imported_counts_with_all_its_tests(tmp_path, coral: Coral) -> None:
    more = {"repo/tests/test_more.py": "import lib\nlib.gone\n\ndef test_a(): pass\ndef test_b(): pass\n"}
    result = proposed(tmp_path, coral, "--tests", files={**REPOSITORY, **more})
    assert (result.score, result.metrics["tests"]) == (0.5, 6), result


def test_dependencies_are_installed_into_an_environment_of_the_grader_s_own(tmp_path, coral: Coral) -> None:
    project = '[project]\nname = "x"\ndependencies = ["numpy>=2"]\n[project.optional-dependencies]\ntest = ["pytest"]\n'
    write_files(tmp_path, {**REPOSITORY, "repo/pyproject.toml": project})
    code, out, _ = coral("init", "--from", str(tmp_path / "repo"), str(tmp_path / "task"), "--tests", "--json")
    assert (code, len(json.loads(out)["report"])) == (0, 1)
    assert load(tmp_path / "task").grader.setup == ("python -m pip install pytest 'numpy>=2' pytest",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "empty"], "no tests and no benchmark were found"),
        (["--from", "nowhere"], "it is no folder"),
        (["--from", "repo", "repo/task"], "agents would see its grader"),
        (["--tests"], "that needs a repository"),
    ],
)
def test_what_cannot_be_proposed_says_what_to_do(
    tmp_path, coral: Coral, monkeypatch, words: list[str], message: str
) -> None:
    write_files(tmp_path, {**REPOSITORY, "empty/a.txt": ""})
    monkeypatch.chdir(tmp_path)
    code, _, err = coral("init", *words)
    assert (code, message in err) == (1, True), err
