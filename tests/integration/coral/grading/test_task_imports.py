"""A task may have modules named `attempts`, `heartbeats` and `workspace`: its grader and check get them."""

import sys
from pathlib import Path

import pytest
from files import write_files

from coral.config.load import load, write
from coral.grading.once import grade_once
from coral.public_check.check import PublicCheck

NAMES = ("attempts", "heartbeats", "workspace")
OWN = "import attempts, heartbeats, workspace\nSCORE = attempts.VALUE + heartbeats.VALUE + workspace.VALUE\n"
FUNCTION = OWN + "from coral.grader import Result, progress\ndef grade(workspace): return Result(SCORE)\n"
LATER = f"""
import sys
def grade(workspace):
    sys.path.insert(0, str(workspace))
    exec({OWN!r}, globals())
    return SCORE
"""
COMMAND = OWN + "import json, os\njson.dump({'score': SCORE}, open(os.environ['CORAL_RESULT'], 'w'))\n"
CHECK = OWN + "def check(folder): return SCORE\n"


def as_modules(folder: Path) -> None:
    write_files(folder, {f"{name}.py": "VALUE = 1\n" for name in NAMES})


def as_packages(folder: Path) -> None:
    write_files(folder, {f"{name}/__init__.py": f"from {name}.record import VALUE\n" for name in NAMES})
    write_files(folder, {f"{name}/record.py": "VALUE = 1\n" for name in NAMES})


def write_task(folder: Path, sections: dict[str, object], file: str, text: str) -> Path:
    described: dict[str, object] = {"task": {"name": "t", "description": "d"}, "grader": {"entry": "one.py:grade"}}
    plain = {"seed/main.txt": "42", "one.py": "def grade(workspace): return 1"}
    return write_files(folder, {**plain, "task.yaml": write(described | sections), file: text})


@pytest.mark.parametrize("lay_down", [as_modules, as_packages])
@pytest.mark.parametrize(
    ("grader", "file", "text", "place"),
    [
        ({"entry": "own/grade.py:grade"}, "own/grade.py", FUNCTION, "own"),
        ({"entry": "own/grade.py:grade"}, "own/grade.py", FUNCTION, "."),
        ({"entry": "grade.py:grade"}, "grade.py", FUNCTION, "."),
        ({"entry": "grade.py:grade"}, "grade.py", LATER, "seed"),
        ({"command": [sys.executable, "grade.py"]}, "grade.py", COMMAND, "."),
        ({"command": [sys.executable, "-m", "grade"]}, "seed/grade.py", COMMAND, "seed"),
    ],
    ids=["function", "function-private", "function-beside-private", "function-seed", "command", "command-seed"],
)
def test_a_grader_imports_its_own(tmp_path, lay_down, grader, file, text, place) -> None:
    folder = tmp_path / "t"
    (folder / place).mkdir(parents=True)
    lay_down(folder / place)
    private = [path.name for name in NAMES for path in folder.glob(f"{name}*")]
    write_task(folder, {"grader": {**grader, "private": private}}, file, text)
    result = grade_once(load(folder), tmp_path / "work")
    assert (result.score, result.reason) == (3, ""), result.output


PLACES = pytest.mark.parametrize(
    ("file", "place"),
    [("check.py", "."), ("checks/check.py", "checks"), ("checks/check.py", ".")],
    ids=["root", "beside", "below"],
)


@pytest.mark.parametrize("lay_down", [as_modules, as_packages])
@PLACES
def test_a_check_of_the_built_in_agent_imports_its_own(tmp_path, lay_down, file: str, place: str) -> None:
    folder = write_task(tmp_path / "t", {}, f"seed/{file}", CHECK)
    lay_down(folder / "seed" / place)
    check = PublicCheck(folder / "seed", f"{file}:check", tmp_path / "scratch", 20.0)
    try:
        assert [(outcome.score, outcome.error) for outcome in check.measure([{}])] == [(3, "")]
    finally:
        check.close()


@pytest.mark.parametrize("lay_down", [as_modules, as_packages])
@PLACES
def test_a_check_of_validate_imports_its_own(tmp_path, coral, lay_down, file: str, place: str) -> None:
    section = {"name": "t", "description": "d", "check": f"{file}:check"}
    folder = write_task(tmp_path / "t", {"task": section}, f"seed/{file}", CHECK)
    lay_down(folder / "seed" / place)
    code, said, told = coral("validate", str(folder))
    assert code == 0, said + told
    assert f"{file}:check gives the seed 3" in said


def test_what_a_grader_imports_of_coral_brings_none_of_the_three(tmp_path) -> None:
    text = f"""
import sys
from coral.grader import Result
def grade(workspace):
    return Result(1, {{name: True for name in sys.modules if name.partition(".")[0] in {NAMES}}})
"""
    folder = write_task(tmp_path / "t", {}, "one.py", text)
    assert grade_once(load(folder), tmp_path / "work").metrics == {}
