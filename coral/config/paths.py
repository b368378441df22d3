"""Checks the paths that a task names on this machine: that they exist, lie where they must, and hide the grader from
the agents."""

import os
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TypeVar

from attempts.files import expanded
from coral.config.document import KeyPath, Problem, shown
from coral.config.model import GRADER_KINDS, AgentsSection, Assignment, GraderSection, HoldoutSection, TaskSection
from coral.runtimes.registry import with_paths
from workspace.layout import leads_outside

LARGEST_ROLE = 100_000  # bytes: agents read all of it
RESERVED = (".git", ".shared")
A = TypeVar("A", bound=Assignment)
Grader = GraderSection | HoldoutSection


def split_entry(entry: str) -> tuple[str, str] | None:
    """Split `grade.py:grade` into file and function; return None if it has another form."""
    file, colon, function = entry.rpartition(":")
    return (file, function) if colon and file.endswith(".py") and function.isidentifier() else None


def split_module(entry: str) -> tuple[str, str] | None:
    """Split `package.module:Grader` into module and name; return None if it has another form."""
    module, colon, name = entry.partition(":")
    is_module = all(part.isidentifier() for part in module.split("."))
    return (module, name) if colon and is_module and name.isidentifier() and not split_entry(entry) else None


def path_problems(
    task: TaskSection | None,
    graders: Mapping[str, Grader],
    agents: AgentsSection | None,
    folder: Path,
) -> Iterator[Problem]:
    """Yield the problems of all paths that a task names. `graders`: the sections `grader` and `holdout`, by their
    names, without those that have problems."""
    unusable = list(_unusable(task, graders, folder))
    yield from unusable
    if not unusable:  # the other checks must not look up an unusable path
        yield from _task_problems(task, folder) if task else ()
        for section, grader in graders.items():
            yield from _grader_problems(section, grader, folder, installs=_installs(graders))
        yield from _exposed(task, graders, folder) if task else ()
    if agents:
        seed = _resolved(task.seed, folder) if task else None
        private = _private(graders, folder)
        for where, assignment in assignments_in(agents):
            yield from _assignment_problems(assignment, where, folder, seed, private)


def assignments_in(agents: AgentsSection) -> Iterator[tuple[KeyPath, Assignment]]:
    """Yield the section itself and each of its assignments, with their paths in the file."""
    yield ("agents",), agents
    for index, assignment in enumerate(agents.assignments):
        yield ("agents", "assignments", index), assignment


def with_roles(agents: AgentsSection, folder: Path) -> AgentsSection:
    """Return the section with the texts of its role files instead of their paths, so that a run does not need the
    files."""
    assignments = tuple(_with_role(assignment, folder) for assignment in agents.assignments)
    return _with_role(agents, folder).model_copy(update={"assignments": assignments})


def _with_role(assignment: A, folder: Path) -> A:
    if not assignment.role_file:
        return assignment
    text = (folder / expanded(assignment.role_file)).read_text("utf-8-sig")
    return assignment.model_copy(update={"role": text, "role_file": ""})


def with_option_paths(agents: AgentsSection, folder: Path) -> AgentsSection:
    """Return the section with absolute paths in the options of runtimes: neither agents nor a later command run in the
    folder of this one."""
    assignments = tuple(_with_option_paths(assignment, folder) for assignment in agents.assignments)
    return _with_option_paths(agents, folder).model_copy(update={"assignments": assignments})


def _with_option_paths(assignment: A, folder: Path) -> A:
    return assignment.model_copy(update={"options": with_paths(assignment.runtime, assignment.options, folder)})


def _resolved(name: str, folder: Path) -> Path | None:
    """Return the path that a text of the task names; None if no path can have that name."""
    try:
        os.fsencode(name)
        path = (folder / expanded(name)).resolve()
        path.exists()
    except (OSError, ValueError, RuntimeError):  # too long; with a zero byte; a loop
        return None
    return path


def _unusable(task: TaskSection | None, graders: Mapping[str, Grader], folder: Path) -> Iterator[Problem]:
    named: dict[KeyPath, str] = {("task", "seed"): task.seed, ("task", "check"): task.check} if task else {}
    for section, grader in graders.items():
        named |= {(section, "entry"): grader.entry, **_private_names(section, grader)}
    for where, name in named.items():
        if _resolved(name, folder) is None:
            yield Problem(where, f"is no path; got {shown(name)}")


def _task_problems(task: TaskSection, folder: Path) -> Iterator[Problem]:
    for index, glob in enumerate(task.editable):
        if leads_outside(glob) or not _is_glob(glob):
            yield Problem(("task", "editable", index), f'must be a glob inside the seed; got "{glob}"')
    seed = folder / expanded(task.seed)
    if not seed.is_dir():
        text = "is not a folder" if seed.exists() else "does not exist"
        yield Problem(("task", "seed"), f'"{task.seed}" {text} (looked at {seed})')
    elif task.check:
        bare = (seed / "HEAD").is_file() and not (seed / ".git").exists()  # its files are in commits alone
        yield from _function_problems(("task", "check"), task.check, None if bare else seed, "the seed")


def _is_glob(text: str) -> bool:
    try:
        next(Path(__file__).parent.glob(text), None)
    except (OSError, ValueError, NotImplementedError):  # OSError: too long for a name
        return False
    return True


def _function_problems(where: KeyPath, text: str, folder: Path | None, name: str) -> Iterator[Problem]:
    """Yield the problems of a `file.py:function`. `folder`: where the file is, None if that cannot be looked up;
    `name`: what messages call the folder."""
    entry = split_entry(text)
    if entry is None or leads_outside(entry[0]):
        yield Problem(where, f'must be file.py:function, relative to {name}; got "{text}"')
    elif folder is not None and not (folder / entry[0]).is_file():
        yield Problem(where, f'"{entry[0]}" does not exist (looked in {folder})')


def _installs(graders: Mapping[str, Grader]) -> bool:
    """Return whether a module that is not there yet may be one that `grader.setup` installs."""
    return any(isinstance(grader, GraderSection) and grader.setup for grader in graders.values())


def _grader_problems(section: str, grader: Grader, folder: Path, *, installs: bool) -> Iterator[Problem]:
    chosen = [key for key in GRADER_KINDS if getattr(grader, key)]
    if isinstance(grader, HoldoutSection):
        if not grader.is_given and grader != HoldoutSection():
            yield Problem((section,), f"needs {', '.join(GRADER_KINDS)} or args: else it is the grader once more")
    elif not chosen:
        yield Problem((section,), f"needs {' or '.join(GRADER_KINDS)}")
    if len(chosen) > 1:
        yield Problem((section,), f"gives both {' and '.join(chosen)}; one of them grades")
    program = grader.command if isinstance(grader.command, str) else "".join(grader.command[:1])
    if grader.command and not program.strip():
        yield Problem((section, "command"), "is blank")
    module = split_module(grader.entry)
    is_module = module is not None and (installs or find_spec(module[0].partition(".")[0]) is not None)
    if grader.entry and not is_module:
        yield from _function_problems((section, "entry"), grader.entry, folder, "the task's folder")
    for where, name in _private_names(section, grader).items():
        if leads_outside(name):
            yield Problem(where, f'must be inside the task\'s folder; got "{name}"')
        elif not (folder / name).exists():
            yield Problem(where, f'"{name}" does not exist (looked in {folder})')


def _exposed(task: TaskSection, graders: Mapping[str, Grader], folder: Path) -> Iterator[Problem]:
    """Yield a problem for each file of the grader that is in the seed: agents get everything there."""
    seed = (folder / expanded(task.seed)).resolve()
    for where, name in _hidden_names(graders).items():
        path = (folder / name).resolve()
        if path.is_relative_to(seed) or seed.is_relative_to(path):
            yield Problem(where, f'"{name}" and the seed "{task.seed}" overlap: agents would see the grader')


def _assignment_problems(
    assignment: Assignment, where: KeyPath, folder: Path, seed: Path | None, private: list[Path]
) -> Iterator[Problem]:
    if assignment.role_file:
        yield from _role_problems(assignment, (*where, "role_file"), folder)
    for at, source in assignment.mounts.items():
        for text in (_mount_problem(at, assignment, seed), _source_problem(source, folder, private)):
            if text:
                yield Problem((*where, "mounts", at), text)


def _role_problems(assignment: Assignment, where: KeyPath, folder: Path) -> Iterator[Problem]:
    if assignment.role:
        yield Problem(where, "stands beside a role; keep one of them")
    name = shown(assignment.role_file)
    file = _resolved(assignment.role_file, folder)
    try:
        if file is None or not file.is_file():
            yield Problem(where, f"{name} is no file (looked at {file or folder})")
        elif file.stat().st_size > LARGEST_ROLE or "\0" in file.read_text("utf-8-sig"):
            yield Problem(where, f"{name} is no text of at most {LARGEST_ROLE // 1000} kB")
    except (OSError, ValueError):
        yield Problem(where, f"{name} cannot be read as a text in UTF-8")


def _mount_problem(at: str, assignment: Assignment, seed: Path | None) -> str:
    names = PurePosixPath(at).parts
    if leads_outside(at) or not names or "\0" in at or names[0] in RESERVED:
        return "must be a path inside the workspace, and not one of git's or Coral's"
    around = [other for other in assignment.mounts if other != at and PurePosixPath(at).is_relative_to(other)]
    if around:
        return f"lies in {shown(around[0])}, which is a mount itself"
    if seed is None:
        return ""
    path = _resolved(at, seed)
    return "is no path" if path is None else "is in the seed already" if path.exists() else ""


def _source_problem(source: str, folder: Path, private: list[Path]) -> str:
    path = _resolved(source, folder)
    if path is None or not path.exists():
        return f"{shown(source)} does not exist (looked at {path or folder})"
    if any(other.is_relative_to(path) or path.is_relative_to(other) for other in private):
        return f"{shown(source)} holds what belongs to the grader: agents would see it"
    return ""


def _private(graders: Mapping[str, Grader], folder: Path) -> list[Path]:
    """Return the paths that agents must not see."""
    return [path for name in _hidden_names(graders).values() if (path := _resolved(name, folder)) is not None]


def _hidden_names(graders: Mapping[str, Grader]) -> dict[KeyPath, str]:
    names: dict[KeyPath, str] = {}
    for section, grader in graders.items():
        entry = split_entry(grader.entry)
        if entry:
            names[section, "entry"] = entry[0]
        names |= _private_names(section, grader)
    return names


def _private_names(section: str, grader: Grader) -> dict[KeyPath, str]:
    return {(section, "private", index): name for index, name in enumerate(grader.private)}
