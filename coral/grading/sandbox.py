"""Makes the sandbox of a grader: it shows the grader's files, the checkout and its working folder, and neither your
home nor the network.

Sandboxes of bubblewrap cannot be started inside one another, so the candidates of a sealed grader are sealed by
Landlock. Without Landlock, a grader is sealed only by a user of its own; its candidates then have another user.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attempts.files import expanded
from coral.config.load import Config
from coral.config.model import GraderSection
from coral.errors import CoralError
from coral.grading.limits import GradeLimits
from coral.processes import seal
from coral.processes.own_user import Places
from coral.processes.seal import ANYWHERE, UNSEALED, Sandbox
from workspace.owner import CANDIDATES, close_runs, give_grade, user_of_grade
from workspace.seal import PRIVATE, Access, Level, View, view_of_grader

# Of a user's home: what programs need, but no folder that has keys in it.
_TOOLS = """
.local/bin .local/lib .cargo/bin .cargo/registry .rustup .pyenv .nvm .julia go/pkg go/bin miniconda3 anaconda3
"""
# What only root may read of the machine's own files.
_KEYS = [Path("/etc", name) for name in ("shadow", "shadow-", "gshadow", "gshadow-", "ssh", "ssl/private")]
# Those of all programs: only namespaces have terminals of their own.
_TERMINALS = [Path("/dev", name) for name in ("tty", "ptmx", "pts")]
_PLACES = ("JAVA_HOME", "GOPATH", "GOROOT", "RUSTUP_HOME", "CONDA_PREFIX", "TORCH_HOME", "VIRTUAL_ENV")


def level_of_graders(asked: str, places: Places = ANYWHERE) -> Level:
    """Return the level of graders' sandboxes for the value of `workspace.seal`. CoralError as `seal.level_for`."""
    level = seal.level_for(asked, places)
    return level if level is Level.USER or not seal.problem(Level.LANDLOCK) else Level.NONE


def places_of(config: Config, reached: Path) -> Places:
    """Return the folders that a task hides, and those that must be reached. `reached`: the folder of all runs, or
    another in which something is graded."""
    assignments = config.agents.assignments or (config.agents,)
    mounted = [config.folder / expanded(source) for assignment in assignments for source in assignment.mounts.values()]
    return Places(hidden=(config.folder,), reached=(reached, *mounted))


def sandbox_of(
    config: Config, grader: GraderSection, *, private: Path, folder: Path, runs: Path, root: Path, venv: Path | None
) -> Sandbox:
    """Return the sandbox of a grade; UNSEALED for a grade on a cluster, for which only code of ours runs here.
    CoralError if the task asks for a seal that is not possible. `private`: the folder of the grader's files; `folder`:
    of the grade, which is made here; `runs`: of all runs; `root`: of the run, or another around `private` and `folder`;
    `venv`: the grader's environment, if it has one. The sandbox shows these folders as they are now, and not another
    that is made in the place of one."""
    if grader.is_remote:
        if config.workspace.seal not in ("best", "none"):
            raise CoralError(
                f"cannot seal graders on a cluster, as workspace.seal: {config.workspace.seal} asks",
                "write workspace.seal: best, which seals the agents if this machine can, or grade on this machine",
            )
        return UNSEALED
    level = level_of_graders(
        config.workspace.seal, places_of(config, runs if root.is_relative_to(runs) else root.parent)
    )
    if level is Level.NONE:
        return UNSEALED
    folder.mkdir(parents=True, exist_ok=True)
    if level is Level.USER:
        close_runs(runs, but=root)
        user = user_of_grade(root, folder, private)
        own = {private: Access.READ, folder: Access.WRITE}
        return Sandbox(level, own, network=grader.network, user=user, candidates=folder / CANDIDATES)
    view = _view(runs, config.folder, Path.home(), grader.readable, grader.writable, grader.network)
    more = {} if venv is None else {venv.parent: Access.READ}
    closed = dict.fromkeys(_TERMINALS, Access.HIDDEN) if level is Level.LANDLOCK else {}
    view = {**view, **closed, **more, private.resolve(): Access.READ, folder.resolve(): Access.WRITE}
    return Sandbox(level, view, network=grader.network, space=GradeLimits.of(grader).most_memory)


def hand_over(sandbox: Sandbox, folder: Path, workspace: Path) -> None:
    """Give a grade's folder, once all is in it, to the grade's user, if it has one. `workspace`: the checkout."""
    if sandbox.user is not None:
        files = next(path for path, access in sandbox.view.items() if access is Access.READ)
        give_grade(folder, sandbox.user, files, Path(os.path.commonpath((folder, files))), workspace)


@cache
def _view(
    runs: Path, task: Path, home: Path, readable: tuple[str, ...], writable: tuple[str, ...], network: bool
) -> View:
    """Return what the views of all grades of a task have in common, once: looking at so many paths takes
    milliseconds."""
    keys = [path for path in _KEYS if path.exists()] if os.geteuid() == 0 else []
    return dict.fromkeys({path.parents[-2] for path in keys}, Access.READ) | view_of_grader(
        hidden=[*(path for path in (runs, task) if path.is_dir()), *keys],
        private=[*PRIVATE, *([home] if home.parents else [])],
        read=[*_needed(home), *map(_path, readable)],
        write=map(_path, writable),
        modules=seal.module_folders(),
        network=network,
    )


def _needed(home: Path) -> Iterator[Path]:
    yield from seal.python_folders()
    yield from (home / name for name in _TOOLS.split())
    yield from (Path(os.environ[name]) for name in _PLACES if os.environ.get(name))
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if Path(folder).is_absolute():
            yield Path(folder)


def _path(text: str) -> Path:
    return expanded(text)
