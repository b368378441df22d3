"""Tasks of the other CORAL, each written from the specification of its format, graded as they are, sealed."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from files import write_files

from attempts.record import Kind
from coral.config.load import load
from coral.grading.once import grade_once
from coral.grading.result import GradeResult
from coral.types import Score, ScoreBundle, Task

HEAD = "from coral.grader import TaskGrader\nfrom coral.types import Score, ScoreBundle\n\n"
TEXT = "task: {name: Their Task, description: Make it larger.}\n"


def graded(
    folder: Path, grader: str, text: str = "", files: Mapping[str, str] | None = None, kind: Kind = Kind.BASELINE
) -> GradeResult:
    """The grade of the seed by this `eval/grader.py`."""
    task = {"seed/solution.py": "print(1.5)\n", "eval/grader.py": HEAD + grader, "task.yaml": TEXT + text}
    config = load(write_files(folder / "task", {**task, **(files or {})}))
    return grade_once(config, folder / "work", kind=kind)


def test_a_program_of_the_candidate_is_run_and_scored(tmp_path) -> None:
    grader = """
class Grader(TaskGrader):
    def evaluate(self) -> float | ScoreBundle:
        done = self.run_program(self.args["program_file"], "--fast")
        if done.returncode != 0:
            return self.fail(f"exit code {done.returncode}", feedback=done.stderr[-200:])
        return self.score(float(done.stdout), "the number that it printed", feedback="well done", metadata={"n": 3})
"""
    result = graded(tmp_path, grader, "grader: {args: {program_file: solution.py}}\n")
    assert (result.outcome, result.score, result.metrics) == ("scored", 1.5, {"n": 3}), result
    assert result.feedback == "well done\neval: the number that it printed"
    assert (result.channel, "grader.py line 7" in result.opened) == ("open", True)


def test_hidden_data_is_read_by_each_of_its_names(tmp_path) -> None:
    grader = """
import sys
from pathlib import Path
from coral.grader.task_grader import TaskGrader as Base

class Judge(Base):
    def evaluate(self):
        sys.path.insert(0, str(Path(self.private_dir) / "eval"))
        import helper
        assert self.read_eval("target.txt") == self.read_eval_path("target.txt").read_text() == "7"
        assert not self.read_eval_path("none").exists()
        answers = Path(self.private_dir, "answers.txt").read_text() + Path(self.private_dir, "plain.txt").read_text()
        assert Path(self.codebase_path, "solution.py").is_file()
        return helper.double(float(answers))

Grader = Judge
"""
    files = {"eval/target.txt": "7", "eval/helper.py": "def double(x): return 2 * x\n", "deep/answers.txt": "4"}
    result = graded(tmp_path, grader, "grader: {private: [deep/answers.txt, plain.txt]}\n", {**files, "plain.txt": "2"})
    assert (result.outcome, result.score, result.channel) == ("scored", 84, "closed"), result


def test_a_bundle_counts_by_its_aggregate_and_tells_its_parts(tmp_path) -> None:
    grader = """
class Grader(TaskGrader):
    def evaluate(self):
        scores = {
            "speed": Score(value=2.0, name="speed", explanation="twice as fast"),
            "size": Score(value=4.0, name="size"),
            "broken": Score(value=None, name="broken"),
        }
        bundle = ScoreBundle(scores=scores, feedback="three parts", metadata={"host": "a"})
        bundle.aggregated = bundle.compute_aggregated({"speed": 3})
        return bundle
"""
    result = graded(tmp_path, grader)
    assert (result.score, result.metrics) == (2.5, {"speed": 2.0, "size": 4.0, "host": "a"}), result
    assert result.feedback == "three parts\nspeed: twice as fast"


@pytest.mark.parametrize(
    ("body", "outcome", "score", "reason"),
    [
        ("return 3", "scored", 3, ""),
        ("return True", "scored", 1, ""),
        ("return '2.5'", "scored", 2.5, ""),
        ("return self.fail('no file', feedback='write one')", "failed", None, "no file"),
        ("return ScoreBundle(scores={'a': Score(3.0, 'a')})", "failed", None, "the grader gave no score"),
        ("return float('nan')", "failed", None, "a score must be finite, got nan"),
        ("return self.score(float('inf'))", "failed", None, "a score must be finite, got inf"),
        ("raise TimeoutError('60 s')", "failed", None, "it took too long: 60 s"),
        ("return None", "crashed", None, "TypeError"),
        ("return {'score': 1}", "crashed", None, "TypeError"),
        ("return Score(1.0, 'a')", "crashed", None, "TypeError"),
        ("import subprocess; raise subprocess.TimeoutExpired('x', 3)", "crashed", None, "TimeoutExpired"),
        ("return self.run_program('missing.py')", "crashed", None, "FileNotFoundError"),
        ("raise SystemExit(3)", "crashed", None, ""),
    ],
)
def test_what_a_grader_returns_or_raises_is_judged_as_the_format_says(
    tmp_path, body: str, outcome: str, score: float | None, reason: str
) -> None:
    result = graded(tmp_path, f"class Grader(TaskGrader):\n    def evaluate(self):\n        {body}\n")
    assert (result.outcome, result.score) == (outcome, score), result
    assert reason in result.reason


def test_scripts_answer_in_json_whatever_else_they_print(tmp_path) -> None:
    grader = """
class Grader(TaskGrader):
    def evaluate(self):
        found = self.run_script_json("import json, solution; print('noise'); print(json.dumps({'x': 4}))")
        assert self.run_script("import sys; sys.exit(3)").returncode == 3
        for script in ("import sys; sys.exit('broken')", "print('nothing')", ""):
            try:
                self.run_script_json(script, timeout=60)
            except RuntimeError:
                found["x"] += 1
        print("{not json", end="")
        return self.bundle(found["x"], "counted")
"""
    assert graded(tmp_path, grader).score == 7


def test_a_grader_knows_what_it_grades_and_leaves_files_for_agents(tmp_path) -> None:
    grader = """
import json, sys
from pathlib import Path

class Grader(TaskGrader):
    def __init__(self, config):
        super().__init__(config=config)
        self.early = config.timeout

    def describe_tune(self):
        return "a tenth of the data"

    def evaluate(self):
        log = self.eval_logs_dir / "log.txt"
        log.write_text("all of it")
        known = {
            "timeout": [self.early, self.timeout], "tune": self.tune, "class": self.budget_class,
            "task": [self.tasks[0].id, self.tasks[0].description], "direction": self.config.direction,
            "python": self.get_python_command() == [sys.executable],
            "log": str(self.eval_logs_worktree_path(log)),
            "other": str(self.eval_logs_worktree_path("/x/eval_logs/a/b")),
        }
        return self.score(1.0, feedback=json.dumps(known))
"""
    text = "grader: {timeout: 40, direction: minimize}\n"
    real = json.loads(graded(tmp_path / "real", grader, text).feedback)
    assert real == {
        "timeout": [40, 40],
        "tune": False,
        "class": "real",
        "task": ["Their Task", "Make it larger."],
        "direction": "minimize",
        "python": True,
        "log": "grades/0/log.txt",
        "other": "eval_logs/a/b",
    }
    tune = graded(tmp_path / "tune", grader, "grader: {timeout: 0}\n", kind=Kind.TUNE).feedback
    assert tune.startswith("[--tune mode] a tenth of the data\n\n")
    assert json.loads(tune.partition("\n\n")[2])["timeout"] == [0, None]
    assert (tmp_path / "real" / "work" / "artifacts" / "log.txt").read_text() == "all of it"


def test_a_grader_that_loads_the_candidate_says_so(tmp_path) -> None:
    grader = """
import importlib.util

class Grader(TaskGrader):
    def evaluate(self):
        spec = importlib.util.spec_from_file_location("candidate", f"{self.codebase_path}/solution.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.VALUE
"""
    result = graded(tmp_path, grader, files={"seed/solution.py": "VALUE = 6\n"})
    assert (result.score, result.channel) == (6, "open"), result
    assert "solution.py" in result.opened


def test_the_folder_eval_needs_no_class_of_that_name_alone(tmp_path) -> None:
    result = graded(tmp_path, "class Marker(TaskGrader):\n    def evaluate(self): return 1\n")
    assert (result.outcome, "has no function Grader" in result.reason) == ("crashed", True)


def test_scores_become_plain_data_and_come_of_it_again() -> None:
    bundle = ScoreBundle({"a": Score(1.0, "a", "fine"), "b": Score(None, "b")}, 1.0, feedback="f", metadata={"n": 1})
    assert ScoreBundle.from_dict(bundle.to_dict()) == bundle
    task = Task("t", "t", "d", {"budget_class": "tune"})
    assert Task.from_dict({**task.to_dict(), "unknown": 1}) == task
    assert (bundle.get("a"), bundle.get("c")) == (bundle.scores["a"], None)
    assert [bundle.get_score_value(name, 9.0) for name in "abc"] == [1.0, 9.0, 9.0]
    assert bundle.compute_aggregated() == 1.0
    assert ScoreBundle({}).compute_aggregated() == 0.0
