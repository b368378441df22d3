"""`TaskGrader`: a grader as a class, as tasks of the other CORAL have it (docs/import.md). `entry: grade.py:Grader` of
`task.yaml` may name a subclass.

Standard library only. What few graders need is imported where they need it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coral.grader.scores import Score, ScoreBundle, Task
from coral.types import Fail

TYPE_CHECKING = False  # as in typing, which takes as long to import as a small grader to run
if TYPE_CHECKING:
    from typing import Any

MARGIN = 30.0  # seconds from a grader's own timeout until the grade is killed: time for its answer
NO_TIMEOUT = 30 * 86_400.0  # seconds: the longest timeout, which stands for the 0 of such tasks
_LOGS = "eval_logs"
_SHOWN = 2000  # characters of the output of a script that failed


@dataclass
class GraderConfig:
    """What a grader knows of its section in the task. `timeout`: in seconds; 0: none."""

    entrypoint: str = ""
    setup: list[str] = field(default_factory=list)
    timeout: int = 300
    args: dict[str, Any] = field(default_factory=dict)
    private: list[str] = field(default_factory=list)
    direction: str = "maximize"
    max_pending_per_agent: int = 1


class TaskGrader(ABC):
    """The base class of such graders, which override `evaluate`. `codebase_path`: the checkout; `private_dir`: the
    folder of the grader's files, in which `eval` is the task's folder of that name; `tasks`: one task."""

    codebase_path: str
    private_dir: str
    tasks: list[Task]

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def evaluate(self) -> Any:
        """Return a number or a ScoreBundle."""

    @property
    def args(self) -> dict[str, Any]:
        return self.config.args  # type: ignore[no-any-return]

    @property
    def timeout(self) -> int | None:
        """The grader's timeout in seconds; None if it has none."""
        return self.config.timeout or None

    @property
    def budget_class(self) -> str:
        return str(self.tasks[0].metadata.get("budget_class", "real"))

    @property
    def tune(self) -> bool:
        return self.budget_class == "tune"

    def describe_tune(self) -> str:
        """Return what is different about a grade of the kind tune, for its feedback."""
        return ""

    @property
    def eval_logs_dir(self) -> Path:
        """The folder for files that agents may read: those directly in it, not those in folders below it."""
        folder = Path(os.environ["CORAL_ARTIFACTS"])
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def eval_logs_worktree_path(self, path: str | Path) -> Path:
        """Return where agents find a file of `eval_logs_dir`, as a path in the run; another path from its folder
        `eval_logs` on, or as it is."""
        given = Path(path)
        try:
            inner = given.relative_to(self.eval_logs_dir)
        except ValueError:
            parts = given.parts
            return Path(*parts[parts.index(_LOGS) :]) if _LOGS in parts else given
        return Path("grades", os.environ.get("CORAL_ATTEMPT", "0"), inner)

    def get_python_command(self) -> list[str]:
        """Return the words that start a Python for the code of the candidate: by uv, if that is installed and the
        checkout has a pyproject.toml."""
        if Path(self.codebase_path, "pyproject.toml").is_file() and shutil.which("uv"):
            return ["uv", "run", "--project", str(self.codebase_path), "python"]
        return [sys.executable]

    def run_program(self, filename: str, *args: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        """Run a file of the checkout, in the checkout. FileNotFoundError if there is none; subprocess.TimeoutExpired
        after `timeout` seconds (default: the grader's own)."""
        path = Path(self.codebase_path, filename)
        if not path.is_file():
            raise FileNotFoundError(f"the checkout has no file {filename}")
        return self._run([str(path), *map(str, args)], self.timeout if timeout is None else timeout)

    def run_script(self, script: str, *, timeout: float = 300) -> subprocess.CompletedProcess[str]:
        """Run a text as a Python program, in the checkout."""
        return self._run(["-c", script], timeout)

    def run_script_json(self, script: str, *, timeout: float = 300) -> dict[str, Any]:
        """Run a text as a Python program, and return the JSON object that it prints: all of its output, or the last
        line that is one. RuntimeError if it fails or prints none."""
        done = self.run_script(script, timeout=timeout)
        if done.returncode != 0:
            raise RuntimeError(f"the script ended with exit code {done.returncode}: {done.stderr.strip()[-_SHOWN:]}")
        lines = [line for line in reversed(done.stdout.splitlines()) if line.lstrip().startswith("{")]
        for text in (done.stdout, *lines):
            try:
                found = json.loads(text)
            except ValueError:
                continue
            if isinstance(found, dict):
                return found
        raise RuntimeError(f"the script printed no JSON object: {done.stdout.strip()[-_SHOWN:] or 'nothing'}")

    def _run(self, arguments: list[str], timeout: float | None) -> subprocess.CompletedProcess[str]:
        line = [*self.get_python_command(), *arguments]
        return subprocess.run(line, cwd=self.codebase_path, capture_output=True, text=True, timeout=timeout)

    def read_eval_path(self, name: str) -> Path:
        return Path(self.private_dir, "eval", name)

    def read_eval(self, name: str) -> str:
        """Return the text of a file in the grader's folder `eval`. FileNotFoundError if there is none."""
        path = self.read_eval_path(name)
        if not path.is_file():
            raise FileNotFoundError(f"the grader has no file eval/{name}")
        return path.read_text(encoding="utf-8")

    def bundle(
        self,
        value: Any,
        explanation: str = "",
        feedback: str | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> ScoreBundle:
        """Return a bundle of one score, which is the score of the attempt."""
        part = Score(value=value, name="eval", explanation=explanation or None)
        return ScoreBundle(scores={"eval": part}, aggregated=value, feedback=feedback, metadata=dict(metadata or {}))

    score = bundle

    def fail(self, explanation: str = "", feedback: str | None = None) -> ScoreBundle:
        """Return a bundle without a score: the attempt has failed, and `explanation` says why."""
        return self.bundle(None, explanation, feedback)


def grade(kind: type[TaskGrader], spec: Mapping[str, Any]) -> dict[str, object]:
    """Grade once by a grader of this class. Return its `score`, `metrics` and `feedback`. Raises Fail if the candidate
    is at fault, and whatever the grader raises. `spec`: as `coral.grading.runner.main` reads it."""
    section = dict(spec["section"])
    left = float(section.pop("timeout"))
    seconds = 0.0 if left >= NO_TIMEOUT else left - MARGIN if left > MARGIN else left
    grader = kind(config=GraderConfig(**section, timeout=int(seconds) if seconds >= 1 or not seconds else 1))
    grader.private_dir = _private_folder(spec["private"], section["private"])
    grader.codebase_path = spec["workspace"]
    metadata = {"budget_class": "tune" if spec["kind"] == "tune" else "real", "agent_id": "", "commit_hash": ""}
    grader.tasks = [Task(id=spec["task"]["name"], metadata=metadata, **spec["task"])]
    try:
        found = grader.evaluate()
    except TimeoutError as error:
        raise Fail(f"it took too long: {error}") from error
    feedback = f"[--tune mode] {grader.describe_tune()}\n\n" if grader.tune else ""
    if not isinstance(found, ScoreBundle):
        return {"score": float(found), "feedback": feedback}
    explained = [f"{name}: {score.explanation}" for name, score in found.scores.items() if score.explanation]
    feedback += "\n".join([*([found.feedback] if found.feedback else []), *explained])
    if found.aggregated is None:
        reasons = [score.explanation for score in found.scores.values() if score.explanation]
        raise Fail("; ".join(reasons) or found.feedback or "the grader gave no score", feedback)
    return {"score": float(found.aggregated), "metrics": _metrics(found), "feedback": feedback}


def _metrics(bundle: ScoreBundle) -> dict[str, object]:
    """Return the scores by name, unless `eval` is the only one, and the metadata."""
    parts = {name: score.value for name, score in bundle.scores.items() if score.value is not None}
    return {**(parts if set(parts) != {"eval"} else {}), **bundle.metadata}


def _private_folder(private: str, names: list[str]) -> str:
    """Return the folder of the grader's files. If the task names files in subfolders, return a folder of links instead,
    in which each of them lies directly."""
    deep = {Path(name).name: name for name in names if len(Path(name).parts) > 1}
    if not deep:
        return private
    folder = Path(os.environ["TMPDIR"], "private")
    folder.mkdir()
    for name in {path.name: path.name for path in Path(private).iterdir()} | deep:
        (folder / name).symlink_to(Path(private, deep.get(name, name)))
    return str(folder)
