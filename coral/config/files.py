"""What the file cannot know: that the seed, the grader and its data exist, and that agents cannot see the latter."""

import os
from pathlib import Path, PurePosixPath

from coral.config.model import GraderSection, TaskSection
from coral.config.problem import Path as Where
from coral.config.problem import Problem, shown


def split_entry(entry: str) -> tuple[str, str] | None:
    """`grade.py:grade` into file and function; None when it has not that form."""
    file, colon, function = entry.rpartition(":")
    return (file, function) if colon and file.endswith(".py") and function.isidentifier() else None


def outside(path: str) -> bool:
    """Whether a path that must stay in its folder leads out of it."""
    return PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts


def file_problems(task: TaskSection | None, grader: GraderSection | None, folder: Path) -> list[Problem]:
    """The problems of the sections that could be read."""
    if unnameable := _unnameable(task, grader, folder):
        return unnameable
    problems = _task(task, folder) if task else []
    problems += _grader(grader, folder) if grader else []
    return problems + (_exposed(task, grader, folder) if task and grader else [])


def _unnameable(task: TaskSection | None, grader: GraderSection | None, folder: Path) -> list[Problem]:
    """Texts that no path can be: they may not even be looked up."""
    named: dict[Where, str] = {("task", "seed"): task.seed, ("task", "check"): task.check} if task else {}
    if grader:
        named[("grader", "entry")] = grader.entry
        named |= {("grader", "private", index): name for index, name in enumerate(grader.private)}
    wrong = [(where, name) for where, name in named.items() if not _is_path(folder, name)]
    return [Problem(where, f"is no path; got {shown(name)}") for where, name in wrong]


def _is_path(folder: Path, text: str) -> bool:
    try:
        os.fsencode(text)
        (folder / Path(text).expanduser()).resolve().exists()
    except (OSError, ValueError, RuntimeError):  # too long; with a zero byte; of a user that is not there, or a loop
        return False
    return True


def _task(task: TaskSection, folder: Path) -> list[Problem]:
    problems = [
        Problem(("task", "editable", index), f'must be a glob inside the seed; got "{glob}"')
        for index, glob in enumerate(task.editable)
        if outside(glob) or not _is_glob(glob)
    ]
    seed = folder / Path(task.seed).expanduser()
    if not seed.is_dir():
        text = "is not a folder" if seed.exists() else "does not exist"
        problems.append(Problem(("task", "seed"), f'"{task.seed}" {text} (looked at {seed})'))
    elif task.check:
        problems += _check(task.check, seed)
    return problems


def _is_glob(text: str) -> bool:
    try:
        next(Path(__file__).parent.glob(text), None)
    except (OSError, ValueError, NotImplementedError):  # OSError: too long for a name
        return False
    return True


def _check(check: str, seed: Path) -> list[Problem]:
    path = ("task", "check")
    entry = split_entry(check)
    if entry is None or outside(entry[0]):
        return [Problem(path, f'must be file.py:function, relative to the seed; got "{check}"')]
    bare = (seed / "HEAD").is_file() and not (seed / ".git").exists()
    if not bare and not (seed / entry[0]).is_file():
        return [Problem(path, f'"{entry[0]}" does not exist in the seed')]
    return []


def _grader(grader: GraderSection, folder: Path) -> list[Problem]:
    problems = []
    if bool(grader.entry) == bool(grader.command):
        which = "gives both entry and command; one of them grades" if grader.entry else "needs entry or command"
        problems.append(Problem(("grader",), which))
    program = grader.command if isinstance(grader.command, str) else "".join(grader.command[:1])
    if grader.command and not program.strip():
        problems.append(Problem(("grader", "command"), "is blank"))
    if grader.entry:
        problems += _entry(grader.entry, folder)
    for index, name in enumerate(grader.private):
        path = ("grader", "private", index)
        if outside(name):
            problems.append(Problem(path, f'must be inside the task\'s folder; got "{name}"'))
        elif not (folder / name).exists():
            problems.append(Problem(path, f'"{name}" does not exist (looked in {folder})'))
    return problems


def _entry(text: str, folder: Path) -> list[Problem]:
    path = ("grader", "entry")
    entry = split_entry(text)
    if entry is None or outside(entry[0]):
        return [Problem(path, f'must be file.py:function, relative to the task\'s folder; got "{text}"')]
    if not (folder / entry[0]).is_file():
        return [Problem(path, f'"{entry[0]}" does not exist (looked in {folder})')]
    return []


def _exposed(task: TaskSection, grader: GraderSection, folder: Path) -> list[Problem]:
    """Everything in the seed is given to the agents: neither the grader nor its data may lie there."""
    seed = (folder / Path(task.seed).expanduser()).resolve()
    entry = split_entry(grader.entry)
    named: dict[Where, str] = {("grader", "entry"): entry[0]} if entry else {}
    named |= {("grader", "private", i): name for i, name in enumerate(grader.private)}
    found = []
    for path, name in named.items():
        place = (folder / name).resolve()
        if place.is_relative_to(seed) or seed.is_relative_to(place):
            found.append(Problem(path, f'"{name}" and the seed "{task.seed}" overlap: agents would see the grader'))
    return found
