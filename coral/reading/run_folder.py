"""Finds the folder of a run by a path, by the run's name, or by the beginning or end of its name."""

from __future__ import annotations

from pathlib import Path

from attempts.files import expanded
from coral.errors import CoralError
from workspace.layout import Layout, find_agent, find_run, find_runs, runs_under, slug

LIST = "`coral runs` lists the runs that are found from here"


def here() -> Path:
    """Return the current directory; CoralError if it was removed."""
    try:
        return Path.cwd()
    except OSError:
        raise CoralError("cannot work here: the current directory is gone", "cd to a folder that exists") from None


def named(name: str, task: str | None) -> Layout:
    """Return the run that the folder `name` is in, or else the run near the current directory whose name is, begins
    with or ends with `name`. `task`: only runs of this task. CoralError if not exactly one run fits."""
    path = expanded(name)
    if path.is_dir():
        run = run_around(path)
        if run is None:
            raise CoralError(f"cannot find a run: {name} is not the folder of one", LIST)
        return run
    folder = find_runs(here())
    runs = [run for run in (runs_under(folder) if folder else []) if is_of(run, task)]
    exact = [run for run in runs if name in (run.root.name, f"{run.root.parent.name}/{run.root.name}")]
    fits = exact or [run for run in runs if run.root.name.startswith(name) or run.root.name.endswith(name)]
    if len(fits) == 1:
        return fits[0]
    if not fits:
        raise CoralError(f"cannot find a run named {name!r} from this folder", LIST)
    names = ", ".join(run.root.name for run in fits[:4])
    raise CoralError(f"cannot tell which run {name!r} is: {len(fits)} fit", f"give more of its name: {names} ...")


def is_of(run: Layout, task: str | None) -> bool:
    """Return whether `run` is a run of the task, given by its name in task.yaml or by its folder's name. None fits
    every run. A copy of a run may lie in a folder of any name; its status.json names the task."""
    if task is None or run.root.parent.name in (task, slug(task)):
        return True
    from coral.reading import lenient_json  # here, since `coral eval` has no use for it

    recorded = lenient_json.read(run.status).text("task")
    return recorded != "" and slug(recorded) == slug(task)


def run_around(path: Path) -> Layout | None:
    """Return the run that a folder lies in, even if the folder is an agent's clone, which is a repository of its
    own."""
    agent = find_agent(path)
    return agent[0] if agent else find_run(path)
