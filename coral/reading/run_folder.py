"""Finds the folder of a run by what somebody calls it: a path, its name, or either end of its name."""

from __future__ import annotations

from pathlib import Path

from coral.errors import CoralError
from workspace.layout import Layout, find_agent, find_run, find_runs, runs_under, slug

LIST = "`coral runs` lists the runs that are found from here"


def here() -> Path:
    """The current directory; CoralError when somebody removed it."""
    try:
        return Path.cwd()
    except OSError:
        raise CoralError("cannot work here: the current directory is gone", "cd to a folder that exists") from None


def named(name: str, task: str | None) -> Layout:
    """The run in the folder `name`, or the one found from here whose name is, starts with or ends with `name`."""
    path = Path(name).expanduser()
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
    """Whether it is a run of the task, named as in task.yaml or as its folder is; None means any."""
    return task is None or run.root.parent.name in (task, slug(task))


def run_around(path: Path) -> Layout | None:
    """The run that a folder belongs to, also where an agent's clone is a repository of its own."""
    agent = find_agent(path)
    return agent[0] if agent else find_run(path)
