"""`coral init` makes a task that loads, grades and can be improved, and never touches a file that exists."""

import json
import math
from pathlib import Path
from types import ModuleType

import jsonschema
import pytest
from files import load_module

from coral.cli import main
from coral.config import document
from coral.config.load import load
from coral.config.schema import SHIPPED
from coral.grader import Fail

FILES = [".gitignore", "grade.py", "hidden.json", "seed", "task.schema.json", "task.yaml"]
BETTER = {"amplitude": 1.7, "decay": 0.25, "frequency": 2.3, "phase": 0.4, "offset": 0.5}


@pytest.fixture
def task(tmp_path, capsys) -> Path:
    assert main(["init", str(tmp_path / "My fit")]) == 0
    return tmp_path / "My fit"


@pytest.fixture
def grader(task: Path) -> ModuleType:
    return load_module(task / "grade.py")


def test_json_names_the_file_of_the_task(tmp_path, capsys) -> None:
    assert main(["init", str(tmp_path / "fit"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"task": str((tmp_path / "fit" / "task.yaml").resolve())}


def test_it_makes_a_task_that_loads(task: Path) -> None:
    config = load(task)
    assert (config.task.name, config.slug) == ("My fit", "my-fit")
    assert sorted(path.name for path in task.iterdir()) == FILES
    assert sorted(path.name for path in (task / "seed").iterdir()) == ["check.py", "measured.json", "model.json"]
    assert (task / ".gitignore").read_text().startswith("runs/")


def test_editors_find_the_schema_and_it_accepts_the_task(task: Path) -> None:
    text = (task / "task.yaml").read_text()
    assert text.startswith("# yaml-language-server: $schema=task.schema.json\n")
    assert (task / "task.schema.json").read_bytes() == SHIPPED.read_bytes()
    jsonschema.validate(document.read(text).data, json.loads(SHIPPED.read_text()))


def test_the_comments_of_the_skeleton_are_true(task: Path) -> None:
    lines = (task / "task.yaml").read_text().splitlines()
    start = lines.index("# heartbeats:")
    end = start + lines[start:].index("")
    taught = [line.removeprefix("# ") if start <= number < end else line for number, line in enumerate(lines)]
    (task / "task.yaml").write_text("\n".join(taught))
    assert [beat.name for beat in load(task).heartbeats][-1] == "simplify"


def test_its_seed_is_graded_and_can_be_improved(task: Path, grader: ModuleType) -> None:
    before = grader.grade(task / "seed", task).score
    (task / "seed" / "model.json").write_text(json.dumps(BETTER))
    after = grader.grade(task / "seed", task).score
    assert 0.7 < before < 0.9
    assert 0.02 < after < 0.04


@pytest.mark.parametrize(
    "model", ["", "[1]", "{}", json.dumps({**BETTER, "decay": -1}), json.dumps({**BETTER, "phase": math.nan}), '"x"']
)
def test_its_grader_refuses_what_is_no_model(task: Path, grader: ModuleType, model: str) -> None:
    (task / "seed" / "model.json").write_text(model)
    with pytest.raises(Fail):
        grader.grade(task / "seed", task)


def test_nothing_is_overwritten(tmp_path, capsys) -> None:
    (tmp_path / "grade.py").write_text("mine")
    assert main(["init", str(tmp_path)]) == 1
    assert "grade.py exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["grade.py"]
    assert (tmp_path / "grade.py").read_text() == "mine"
    (tmp_path / "hidden.json").write_text("mine")
    assert main(["init", str(tmp_path)]) == 1
    assert "grade.py, hidden.json exist already\n  name a folder that has nothing" in capsys.readouterr().err


def test_the_folder_may_be_here_and_keeps_its_gitignore_and_the_commands_follow(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("mine\n")
    assert main(["init"]) == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"
    assert "cd " not in capsys.readouterr().out
    assert main(["init", "a task"]) == 0
    assert "cd 'a task'\n" in capsys.readouterr().out


def test_a_folder_without_a_plain_name_is_a_task_too(tmp_path, capsys) -> None:
    assert main(["init", str(tmp_path / "数学")]) == 0
    assert load(tmp_path / "数学").slug == "task"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert main(["init", str(tmp_path / "file" / "task")]) == 1
    assert "cannot make a task" in capsys.readouterr().err
