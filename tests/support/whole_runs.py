"""Whole runs of real agent programs: the task, the model's manners, and `coral start` from its beginning to its end."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from files import write_files
from model_server import Asked, Step
from real_runs import READ_NUMBER, coral_interpreter, left_of

from workspace.layout import Layout, runs_under

HEAD = re.compile(r"^## Heartbeat: reflect \(id .+\)$", re.MULTILINE)
DENIED = re.compile(r"EACCES|EPERM|EROFS|permission denied|not permitted|read-only file system", re.IGNORECASE)
NEVER_ALLOWED = "Ripgrep not available"  # qwen's package has one that nobody may execute: it says so without a sandbox
NOTED = "I have noted what I saw."
MAX_SECONDS = 600.0


def trying(usage: tuple[int, int, int] = (10, 5, 0)) -> Callable[[Asked], Step]:
    """Return a model whose every answer is another try: no turn of its agents ends but by an interrupt."""
    numbers = count(1)

    def work(asked: Asked) -> Step:
        number = next(numbers)
        run = f"echo {number} > x.txt && coral eval -m 'try {number}'"
        return Step(say=f"I try {number}.", run=run, usage=usage)

    return work


def noting(usage: tuple[int, int, int]) -> Callable[[Asked], Step]:
    """Return a model that answers each heartbeat, which ends the turn, before it tries again."""
    another, numbers = trying(usage), count(1)

    def work(asked: Asked) -> Step:
        said = "\n".join(asked.texts)
        if len(set(HEAD.findall(said))) > said.count(NOTED):
            return Step(say=f"{NOTED} It is note {next(numbers)}.", usage=usage)
        return another(asked)

    return work


def write_task(folder: Path, agents: Mapping[str, object], budget: Mapping[str, object]) -> Path:
    """Write a task of one number. After a turn that ended by itself an agent goes on at once."""
    task = (
        "task:\n  name: number\n  description: Make the number large.\ngrader:\n  entry: grade.py:grade\n  noise: 0\n"
        f"agents: {json.dumps(agents)}\nbudget: {json.dumps(budget)}\nrun: {{backoff: 0.1, start_grace: 300}}\n"
    )
    write_files(folder, {"seed/x.txt": "0", "grade.py": READ_NUMBER, "task.yaml": task})
    folder.chmod(0o700)  # as agents with users of their own demand
    return folder


def start(task: Path, runs: Path, *overrides: str) -> Layout:
    """Start a run; return it once it has ended by itself and left no process."""
    try:
        done = coral_interpreter("start", str(task), "--plain", *overrides, cwd=runs, seconds=MAX_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        coral_interpreter("stop", cwd=runs, seconds=MAX_SECONDS)
    (layout,) = runs_under(runs / "runs")
    assert left_of(layout) == []
    return layout


@contextmanager
def running(task: Path, runs: Path, *overrides: str) -> Iterator[Layout]:
    """Start a run under a supervisor in the background; it is stopped at the end of the context, and has left no
    process."""
    try:
        done = coral_interpreter("start", str(task), "--detach", *overrides, cwd=runs, seconds=MAX_SECONDS)
        assert done.returncode == 0, done.stdout + done.stderr
        (layout,) = runs_under(runs / "runs")
        yield layout
    finally:
        coral_interpreter("stop", cwd=runs, seconds=MAX_SECONDS)
    assert left_of(layout) == []


def denied(layout: Layout) -> list[str]:
    """Return the lines in which the programs of a run say that something was refused to them."""
    printed = [path for end in ("jsonl", "err") for path in layout.logs_of_all.glob(f"*/*.{end}")]
    assert printed
    lines = (line for path in printed for line in path.read_text(errors="replace").splitlines())
    return [line for line in lines if DENIED.search(line) and not line.startswith(NEVER_ALLOWED)]


def delivered(layout: Layout, agent: str) -> list[str]:
    """What the prompts of an agent's launches said of heartbeats, in order; of those that ran: a supervisor that is
    killed may have written the prompt of one that did not."""
    paths = [path for path in sorted(layout.logs(agent).glob("*.prompt.md")) if _has_run(layout, agent, path)]
    return [head for path in paths for head in HEAD.findall(path.read_text())]


def _has_run(layout: Layout, agent: str, prompt: Path) -> bool:
    output = layout.output(agent, int(prompt.name.partition(".")[0]))
    return output.is_file() and output.stat().st_size > 0
