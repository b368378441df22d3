"""Finds the run that a command is about: the one that is named, the one around the current directory, or else the
newest nearby.

Nothing is remembered from one command to the next: a run is found only by its place.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from pathlib import Path

from attempts.files import expanded
from coral.errors import CoralError
from coral.reading.run_folder import here, is_of, named, run_around
from workspace.layout import Layout, find_agent, find_runs, runs_under

TASK_FILE = "task.yaml"
NO_RUN = "start one with `coral start TASK`, or name one: --run PATH"


def add_arguments(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Add the two options of every command that is about a run, --run and --task."""
    parser.add_argument("--run", metavar="RUN", default=default, help="its folder, its name, or either end of its name")
    parser.add_argument("--task", metavar="NAME", default=default, help="the newest run of this task")


def agent_here() -> tuple[Layout, str]:
    """Return the run and the agent in whose workspace the current directory is. CoralError if it is in none."""
    found = find_agent(here())
    if found is None:
        hint = "go to a run's workspace/agents/<agent>, or look at a run with `coral status`"
        raise CoralError(f"cannot do that here: {here()} is not an agent's workspace", hint)
    return found


def run_of(args: argparse.Namespace) -> Layout:
    """Return the run that the options name, else the one that the current directory is in, else the newest that is
    found from there. CoralError if there is none."""
    if args.run:
        return named(str(args.run), args.task)
    inside = run_around(here())
    if inside is not None and is_of(inside, args.task):
        return inside
    found = from_here(args.task)
    if not found:
        task = f" of the task {args.task!r}" if args.task else " of this task" if task_folder() else ""
        raise CoralError(f"cannot find a run: there is no run{task} in or above {here()}", NO_RUN)
    return found[0]


def from_here(task: str | None) -> list[Layout]:
    """Return the runs in the nearest `runs` folder that has any, newest first. In a task's folder only the runs of that
    task are returned: another task's would be stopped by a command that was meant for this one. They were started from
    this folder; if the task was moved since, they lie in it or have its name."""
    folder = find_runs(here())
    runs = runs_under(folder) if folder else []
    if task:
        return [run for run in runs if is_of(run, task)]
    at = task_folder()
    if at is None or folder is None:
        return runs
    own = [run for run in runs if origin(run) == at]
    return own or [run for run in runs if folder.is_relative_to(at) or is_of(run, at.name)]


def flag(run: Layout) -> str:
    """Return the option with which a command typed here is about this run; empty if that is the run that it would take
    anyway."""
    inside = run_around(here())
    default = [inside] if inside else from_here(None)
    if default and default[0].root == run.root:
        return ""
    is_near = any(near.root == run.root for near in from_here(None))
    return f" --run {run.root.name if is_near else shlex.quote(str(run.root))}"


def task_of(to: str, given: str | None, overrides: list[str]) -> tuple[Path, list[str], Path]:
    """Return the task file for the command `to`, its overrides, and the folder in which the folder of its runs is made:
    the current directory if `given` names a task. Otherwise `given` is an override, as in `coral start agents.count=4`,
    or None, and the closest task from the current directory up is meant; its runs are made in the task's folder, never
    in its seed."""
    if given is not None and ("=" not in given or Path(given).exists()):
        return _existing_task(to, given), overrides, here()
    folder = task_folder()
    if folder is None:
        hint = "name the folder of one, or `coral init` makes a task that works"
        raise CoralError(f"cannot {to}: there is no task.yaml in or above {here()}", hint)
    return folder / TASK_FILE, ([given] if given else []) + overrides, folder


def _existing_task(to: str, given: str) -> Path:
    path = expanded(given)
    if path.exists():
        return path
    from difflib import get_close_matches

    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    tasks = [item.name for item in beside if (item / TASK_FILE).is_file() or item.suffix in (".yaml", ".yml")]
    near = [shlex.quote(str(Path(given).parent / name)) for name in get_close_matches(path.name, tasks, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else "`coral init` makes a task that works"
    raise CoralError(f"cannot {to}: there is no folder or task file {given}", hint)


def task_folder() -> Path | None:
    """Return the closest folder that has a task, from the current directory up; None if there is none."""
    start = here()
    return next((folder for folder in (start, *start.parents) if (folder / TASK_FILE).is_file()), None)


def origin(run: Layout) -> Path | None:
    """Return the folder of the task that a run was started from, by the `origin` in its frozen task; None if it cannot
    be read."""
    from attempts.files import open_plain  # here, since each `coral eval` would import it before it starts git

    with contextlib.suppress(OSError, ValueError), open_plain(run.task_file) as file:
        for line in (next(file, b"").decode() for _ in range(5)):
            if line.startswith("origin:"):
                return Path(line.partition(":")[2].strip().strip("'\"")).parent
    return None


def unmade(run: Layout) -> tuple[str, str]:
    """Return what is wrong with a run that was not made to its end, and what to do about it."""
    hint = f"unless its `coral start` is still at it, remove {run.root}; `coral start` makes another run"
    return "it was never made to its end", hint


def program() -> str:
    """Return how the user can type this program: `coral` if PATH leads to this installation, else the path of its
    script."""
    import shutil  # here, since it imports three kinds of compression, which an eval does not need

    script = Path(sys.executable).parent / "coral"
    found = shutil.which("coral")
    if not script.is_file() or (found and Path(found).resolve() == script.resolve()):
        return "coral"
    path = os.path.relpath(script)
    if path.startswith(os.pardir) and len(path) > len(str(script)):
        path = str(script)
    return shlex.quote(path if os.sep in path else os.path.join(os.curdir, path))  # noqa: PTH118 - Path drops the dot


def command(name: str, run: Layout) -> str:
    """Return a command about this run as the user can type it: `coral attach --run NAME`."""
    return f"{program()} {name}{flag(run)}"
