"""Each kind of grader says which files it needs and how it is started."""

import platform
import sys
from pathlib import Path

import pytest

from attempts.record import Kind
from coral.config.model import GRADER_KINDS, GraderSection
from coral.grading.command import GradePlace
from coral.grading.kinds import KINDS, command_argv, kind_of
from coral.processes.seal import UNSEALED


@pytest.fixture
def place(tmp_path: Path) -> GradePlace:
    for name in ("checkout", "private", "grade"):
        (tmp_path / name).mkdir()
    (tmp_path / "private" / "grade.sh").touch()
    folder = tmp_path / "grade"
    return GradePlace(
        workspace=tmp_path / "checkout",
        private=tmp_path / "private",
        folder=folder,
        attempt=7,
        kind=Kind.REAL,
        timeout=60,
        sandbox=UNSEALED,
    )


def test_every_grader_key_has_its_kind() -> None:
    assert tuple(KINDS) == GRADER_KINDS
    assert {key: kind_of(GraderSection(**{key: "x.py:f"})) for key in KINDS} == KINDS


def test_only_of_a_function_it_is_known_which_python_grades() -> None:
    function, command = GraderSection(entry="g.py:f"), GraderSection(command="python3 g.py")
    assert kind_of(function).python == f"Python {platform.python_version()} ({sys.executable})"
    assert kind_of(command).python == ""


def test_a_function_is_called_in_an_empty_folder(place: GradePlace) -> None:
    grader = GraderSection(entry="grade.py:score", args={"k": 1})
    command = kind_of(grader).command(grader, place)
    assert command.cwd == place.folder / "tmp"
    assert command.argv == (str(place.folder / "spec.json"),)
    assert command.interpreter.argv[1] == "-P"
    assert command.spec is not None
    assert (command.spec["entry"], command.spec["function"]) == (str(place.private / "grade.py"), "score")
    assert "CORAL_RESULT" not in command.env


def test_a_command_runs_in_the_checkout_with_the_graders_own_files(place: GradePlace) -> None:
    grader = GraderSection(command="./grade.sh fast")
    command = kind_of(grader).command(grader, place)
    assert command.cwd == place.workspace
    assert command.argv == ("/bin/sh", "-c", f"{place.private / 'grade.sh'} fast")
    assert command.env["CORAL_RESULT"] == str(place.folder / "result.json")
    assert command.spec is None


@pytest.mark.parametrize(
    ("grader", "needed"),
    [
        (GraderSection(entry="grade.py:grade"), ["grade.py"]),
        (GraderSection(entry="grading/main.py:grade"), ["grading"]),
        (GraderSection(command="python3 bench.py | tail -1"), ["bench.py"]),
        (GraderSection(command=("./run.sh", "../outside.sh", "absent")), ["run.sh"]),
    ],
)
def test_the_files_of_a_grader(grader: GraderSection, needed: list[str], tmp_path: Path) -> None:
    for name in ("grade.py", "bench.py", "run.sh"):
        (tmp_path / name).touch()
    assert [str(path) for path in kind_of(grader).files(grader, tmp_path)] == needed


def test_a_candidate_cannot_replace_the_grader(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "grade.py").touch()
    own = str(private / "grade.py")
    assert command_argv(["python3", "grade.py", "main.py"], private) == ("python3", own, "main.py")
    assert command_argv("python3 ./grade.py  main.py", private) == ("/bin/sh", "-c", f"python3 {own} main.py")
    assert command_argv("python3 grade.py | tee log", private) == ("/bin/sh", "-c", "python3 grade.py | tee log")
    assert command_argv(["../private/grade.py", "/bin/true"], private) == ("../private/grade.py", "/bin/true")
