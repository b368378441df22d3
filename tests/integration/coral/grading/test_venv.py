"""Graders of the other CORAL that are packages: pip installs them into an environment of their own, here offline."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from files import write_files
from offline_package import package

from coral.config.load import Config, load
from coral.errors import CoralError
from coral.grading.once import grade_once
from coral.grading.venv import make

pytestmark = pytest.mark.slow

GRADER = """
import sys
from importlib.metadata import version
from pathlib import Path

from coral.grader import TaskGrader
from coral.types import ScoreBundle

class Judge(TaskGrader):
    def evaluate(self):
        done = self.run_program("solution.py")
        ours = [name for name in ("attempts", "heartbeats", "workspace", "pydantic", "pytest") if self.finds(name)]
        metadata = {"prefix": sys.prefix, "file": __file__, "ours": " ".join(ours), "coral": version("coral")}
        return self.score(float(done.stdout) * float(self.read_eval("factor.txt")), metadata=metadata)

    def finds(self, name):
        from importlib.util import find_spec
        return find_spec(name) is not None
"""
TASK = """
task: {{name: Packed, description: Larger.}}
grader: {{entrypoint: "judges.grade:Judge", setup: ["uv pip install --no-index -e {place}"]}}
"""
FILES = {"task/seed/solution.py": "print(1.5)\n", "task/eval/factor.txt": "2"}


def packed(folder: Path, place: str) -> Config:
    """The task in `task`, whose grader lies at this place."""
    where = os.path.normpath(f"task/{place}")
    files = {**FILES, **package(where, GRADER), "task/task.yaml": TASK.format(place=place)}
    return load(write_files(folder, files) / "task")


@pytest.mark.skipif(shutil.which("uv") is not None, reason="uv would need its own cache")
def test_a_packaged_grader_runs_in_its_own_environment_from_a_copy_of_its_sources(tmp_path) -> None:
    config = packed(tmp_path, "../packages/judges")
    venv = make(config, tmp_path / "venvs")
    assert venv is not None
    shutil.rmtree(tmp_path / "packages")
    result = grade_once(config, tmp_path / "work", venv=venv)
    assert (result.outcome, result.score) == ("scored", 3), result
    found = result.metrics
    assert found["prefix"] == str(venv) != sys.prefix
    assert (Path(str(found["file"])).is_relative_to(venv.parent), found["ours"], found["coral"]) == (True, "", "99.0")


def test_it_is_made_once_for_the_same_sources_and_names_the_command_that_fails(tmp_path) -> None:
    text = 'grader: {entrypoint: "a.b:C", setup: ["cat notes.txt; ! grep -q bad notes.txt"]}\n'
    files = {"seed/a.py": "", "notes.txt": "good", "task.yaml": f"{text}task: {{name: t, description: d}}\n"}
    config, said = load(write_files(tmp_path / "task", files)), list[str]()
    first = make(config, tmp_path / "venvs", said.append)
    (tmp_path / "task" / "seed" / "a.py").write_text("print(2)\n")
    assert make(config, tmp_path / "venvs", said.append) == first
    assert said == ["setting up the grader's environment"]
    (tmp_path / "task" / "notes.txt").write_text("bad")
    with pytest.raises(CoralError) as caught:
        make(config, tmp_path / "venvs")
    assert "`cat notes.txt; ! grep -q bad notes.txt` ended with exit code 1" in str(caught.value)
    assert caught.value.hint == "bad"


def test_a_task_without_commands_has_no_environment(tmp_path) -> None:
    text = "grader: {entry: grade.py:grade}\ntask: {name: t, description: d}\n"
    files = {"seed/a.py": "", "task.yaml": text, "grade.py": "def grade(workspace): return 1\n"}
    assert make(load(write_files(tmp_path, files)), tmp_path / "venvs") is None
