"""The sandbox of a grader: it has its own files, the checkout and its working folder, and neither your home nor the
network.

Sandboxes of bubblewrap cannot be started inside one another. Candidates that a sealed grader runs are sealed by
Landlock, without which no grader is sealed, unless it has a user of its own: then they have another.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from coral.config.load import Config
from coral.config.model import GraderSection
from coral.errors import CoralError
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
    """The level for `workspace.seal`. CoralError as `seal.level_for`."""
    level = seal.level_for(asked, places)
    return level if level is Level.USER or not seal.problem(Level.LANDLOCK) else Level.NONE


def places_of(config: Config, reached: Path) -> Places:
    """What a task hides and needs. `reached`: the folder of all runs, or another in which something is graded."""
    assignments = config.agents.assignments or (config.agents,)
    mounted = [config.folder / Path(source).expanduser() for one in assignments for source in one.mounts.values()]
    return Places(hidden=(config.folder,), reached=(reached, *mounted))


def sandbox_of(
    config: Config, grader: GraderSection, *, private: Path, folder: Path, runs: Path, root: Path, venv: Path | None
) -> Sandbox:
    """`private`: the folder of the grader's files; `folder`: that of the grade, which is made here; `runs`: that of all
    runs; `root`: that of the run, or another that has the rest in it; `venv`: the grader's environment, if it has one.
    It shows these folders as they are now: a folder in the place of one of them is not seen. For a grade on a cluster,
    only code of ours runs here."""
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
    return Sandbox(level, view, network=grader.network)


def hand_over(sandbox: Sandbox, folder: Path, workspace: Path) -> None:
    """Give a grade's folder, once all is in it, to the grade's user, if it has one. `workspace`: the checkout."""
    if sandbox.user is not None:
        files = next(path for path, access in sandbox.view.items() if access is Access.READ)
        give_grade(folder, sandbox.user, files, Path(os.path.commonpath((folder, files))), workspace)


@cache
def _view(
    runs: Path, task: Path, home: Path, readable: tuple[str, ...], writable: tuple[str, ...], network: bool
) -> View:
    """What all grades of a task have in common: it takes milliseconds to look at so many paths."""
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
    return Path(text).expanduser()
