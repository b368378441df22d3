"""A task of the other CORAL, started as it is: its seed fails, its heartbeats interrupt, its attempts are judged."""

import json
from pathlib import Path

from files import write_files
from real_runs import coral_process, tries

from attempts.record import Verdict
from attempts.store import Store
from workspace.layout import runs_under

TASK = """
task: {name: Their Task, description: "Make the number larger. Write to {shared_dir}/notes."}
grader: {timeout: 60, args: {least: 2}}
agents:
  runtime: claude_code
  model: sonnet
  max_turns: 10
  heartbeat: [{name: pivot, every: 2}, {name: own_words, every: 1, prompt: "{agent_id}: use {braces} in {shared_dir}."}]
workspace: {repo_path: ./examples/their_task/seed}
"""
GRADER = """
from pathlib import Path
from coral.grader import TaskGrader
from coral.types import ScoreBundle

class Grader(TaskGrader):
    def evaluate(self) -> float | ScoreBundle:
        number = float(Path(self.codebase_path, "x.txt").read_text())
        if number < self.args["least"]:
            return self.fail(f"{number:g} is too small", feedback="more")
        (self.eval_logs_dir / "number.txt").write_text(str(number))
        return self.score(number, "the number")
"""


def test_a_task_of_the_other_system_runs_unmodified(tmp_path) -> None:
    files = {"task.yaml": TASK, "eval/grader.py": GRADER, "seed/x.txt": "0"}
    task = write_files(tmp_path / "their_task", files)
    before = {path: path.read_bytes() for path in task.rglob("*") if path.is_file()}
    script = json.dumps(tries(3, 1, 5))
    words = ["agents.runtime=scripted", f"agents.options={{script: {script}}}", "budget.attempts=3", "--plain"]
    done = coral_process("start", str(task), *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "a task of the other CORAL, of which 2 things came out otherwise" in done.stderr
    (layout,) = runs_under(tmp_path / "runs")
    store = Store(layout.attempts)
    records = [record for record in map(store.read, store.numbers()) if record.of is None]
    found = [(record.verdict, record.score, record.reason) for record in records]
    assert found[:3] == [
        (Verdict.FAILED, None, "0 is too small"),
        (Verdict.NEW_BEST, 3, ""),
        (Verdict.FAILED, None, "1 is too small"),
    ]
    assert found[3][1] == 5
    assert Path(layout.grade(1), "number.txt").read_text() == "3.0"
    prompts = "".join(path.read_text() for path in sorted(layout.logs("agent-1").glob("*.prompt.md")))
    assert "agent-1: use {braces} in .shared." in prompts
    assert {path: path.read_bytes() for path in task.rglob("*") if path.is_file()} == before
