"""`coral import`, of tasks of the other CORAL and of folders for OpenEvolve: what it writes grades as the original."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from files import write_files
from offline_package import package

from coral.config.load import load
from coral.grading.once import grade_once

Coral = Callable[..., tuple[int, str, str]]
THEIRS = {
    "their/task.yaml": """
task: {name: Their Task, description: "Notes are in {shared_dir}."}
grader: {timeout: 60, private: [answers.txt], setup: ["uv pip install -e ../judges"]}
agents: {runtime: codex, max_turns: 9, heartbeat: [{name: pivot, every: 4, trigger: plateau}]}
workspace: {repo_path: REPO}
""",
    "their/eval/grader.py": """
from pathlib import Path
from coral.grader import TaskGrader

class Grader(TaskGrader):
    def evaluate(self):
        return float(self.run_program("solution.py").stdout) + float(Path(self.private_dir, "answers.txt").read_text())
""",
    "their/answers.txt": "40",
    "their/seed/solution.py": "import base\nprint(base.N)\n",
    "repo/base.py": "N = 2\n",
    "repo/solution.py": "print('replaced')\n",
    **package("judges", ""),
}
PROGRAM = """
# EVOLVE-BLOCK-START
def solve():
    return 3.5
# EVOLVE-BLOCK-END
"""
EVALUATOR = """
import importlib.util, os
from openevolve.evaluation_result import EvaluationResult

TARGET = float(open(os.path.join(os.path.dirname(__file__), "target.txt")).read())

def load(path):
    spec = importlib.util.spec_from_file_location("program", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""


FIRST = "def evaluate_stage1(path): return {'a': 0.4}\n"


def test_a_task_of_the_other_system_becomes_one_of_ours_with_a_report(tmp_path, coral: Coral, monkeypatch) -> None:
    write_files(tmp_path, THEIRS)
    task = tmp_path / "their" / "task.yaml"
    task.write_text(task.read_text().replace("REPO", str(tmp_path / "repo")))
    monkeypatch.chdir(tmp_path)
    code, out, err = coral("import", "their", "ours")
    assert (code, err) == (0, "")
    assert [line.strip().partition(":")[0] for line in out.splitlines()[1:]] == [
        "agents.max_turns",
        "workspace.repo_path",
        "grader.setup",
    ]
    config = load(tmp_path / "ours")
    assert (config.translated, config.grader.setup) == (None, ("uv pip install -e judges",))
    assert config.task.description == "Notes are in .shared."
    names = sorted(path.relative_to(tmp_path / "ours").as_posix() for path in (tmp_path / "ours").rglob("*.*"))
    assert set(names) >= {"answers.txt", "eval/grader.py", "judges/pyproject.toml", "seed/base.py", "seed/solution.py"}
    text = (tmp_path / "ours" / "task.yaml").read_text()
    (tmp_path / "ours" / "task.yaml").write_text(text.replace('  setup:\n    - "uv pip install -e judges"\n', ""))
    result = grade_once(load(tmp_path / "ours"), tmp_path / "work")
    assert (result.outcome, result.score) == ("scored", 42), result


def evolved(folder: Path, coral: Coral, evaluator: str, settings: str = "") -> Path:
    """Import a task from a folder for OpenEvolve; returns its folder."""
    files = {"initial_program.py": PROGRAM, "evaluator.py": EVALUATOR + evaluator, "target.txt": "9"}
    files |= {"config.yaml": settings} if settings else {}
    write_files(folder / "their", files)
    code, out, err = coral("import", str(folder / "their"), str(folder / "ours"), "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["task"] == str(folder / "ours" / "task.yaml")
    return folder / "ours"


@pytest.mark.parametrize(
    ("evaluator", "settings", "score"),
    [
        ("def evaluate(path): return {'combined_score': 2.5, 'other': 100.0}\n", "", 2.5),
        ("def evaluate(path): return {'a': 1.0, 'b': 4, 'complexity': 90.0, 'ok': True, 'text': 'x'}\n", "", 2.5),
        ("def evaluate(path): return {'a': 1.0, 'size': 4}\n", "database: {feature_dimensions: [size]}\n", 1.0),
        (
            "def evaluate(path): return EvaluationResult(metrics={'combined_score': load(path).solve() - TARGET})\n",
            "",
            -5.5,
        ),
        # The stages: the first must reach the first threshold, 0.5 unless the settings say another.
        (
            f"{FIRST}def evaluate_stage2(path): return {{'a': 9.0}}\ndef evaluate(path): 1 / 0\n",
            "",
            0.4,
        ),
        (
            f"{FIRST}def evaluate_stage2(path): return {{'b': 2.0}}\ndef evaluate(path): 1 / 0\n",
            "evaluator: {cascade_thresholds: [0.3]}\n",
            1.2,
        ),
        (
            f"{FIRST}def evaluate(path): return {{'a': 7.0}}\n",
            "evaluator: {cascade_evaluation: false}\n",
            7.0,
        ),
    ],
)
def test_an_openevolve_program_scores_as_it_does_there(
    tmp_path, coral: Coral, evaluator: str, settings: str, score: float
) -> None:
    result = grade_once(load(evolved(tmp_path, coral, evaluator, settings)), tmp_path / "work")
    assert (result.outcome, result.score) == ("scored", pytest.approx(score)), result


def test_artifacts_are_feedback_and_a_program_without_a_number_has_failed(tmp_path, coral: Coral) -> None:
    evaluator = (
        "def evaluate(path): return EvaluationResult({'error': 'no solution'}, {'log': b'line 3', 'note': 'x'})\n"
    )
    result = grade_once(load(evolved(tmp_path, coral, evaluator)), tmp_path / "work")
    assert (result.outcome, result.reason, result.feedback) == ("failed", "no solution", "log:\nline 3\n\nnote:\nx")


def test_settings_of_openevolve_are_translated_or_said(tmp_path, coral: Coral) -> None:
    settings = """
max_iterations: 40
random_seed: 3
llm: {primary_model: x}
prompt: {system_message: Find the best number., num_top_programs: 3}
evaluator: {timeout: 50, parallel_evaluations: 3, memory_limit_mb: 2000}
"""
    write_files(tmp_path / "their", {"requirements.txt": "openevolve\n# none\nnumpy\n"})
    task = evolved(tmp_path, coral, "def evaluate(path): return {'a': 1.0}\n", settings)
    config = load(task)
    assert config.task.description.startswith("Find the best number.")
    assert "EVOLVE-BLOCK-START" in config.task.description
    grader = config.grader
    assert (grader.timeout, grader.slots, grader.memory, config.budget.attempts) == (50, 3, 2, 40)
    assert grader.setup == ("python -m pip install -r requirements.txt",)
    assert (task / "requirements.txt").read_text() == "# none\nnumpy\n"
    assert (config.task.editable, grader.private) == (("initial_program.py",), ("evaluator.py", "target.txt"))


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"readme.md": ""}, "it is no task that is known"),
        ({"task.yaml": "task: {}\ngrader: {entry: a.py:b}\n"}, "it is a task of Coral already"),
        ({"evaluator.py": "x = 1\n", "initial_program.py": ""}, "its evaluator.py has no function evaluate"),
        (
            {"evaluator.py": "def evaluate(p): 1\n", "initial_program.py": "", "config.yaml": "a: ["},
            "config.yaml is not",
        ),
    ],
)
def test_what_is_no_task_is_refused_and_nothing_is_made(
    tmp_path, coral: Coral, files: dict[str, str], message: str
) -> None:
    write_files(tmp_path / "their", files)
    code, _, err = coral("import", str(tmp_path / "their"), str(tmp_path / "ours"))
    assert (code, message in err) == (1, True), err
    assert not (tmp_path / "ours").exists()


def test_nothing_is_overwritten(tmp_path, coral: Coral) -> None:
    write_files(tmp_path, {**THEIRS, "ours/mine.txt": "keep"})
    code, _, err = coral("import", str(tmp_path / "their"), str(tmp_path / "ours"))
    assert (code, "it exists, and is not empty" in err) == (1, True)
    assert [path.name for path in (tmp_path / "ours").iterdir()] == ["mine.txt"]
