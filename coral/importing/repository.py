"""Proposes a task for a repository: its tests or a benchmark as the grader, the repository itself as the seed."""

import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from coral.errors import CoralError
from coral.importing.written_task import NOT_COPIED, MadeTask

HIDDEN = "hidden"
DEEPEST, MOST = 4, 20_000  # folders below the repository, and entries, that are looked at
_TEMPLATES = Path(__file__).parents[1] / "templates"
_TESTS = ("test_*.py", "*_test.py")
_BENCHMARKS = ("bench*.py", "*_bench.py", "*benchmark.py", "bench*.sh")
_SKIPPED = {*NOT_COPIED, "build", "dist", "venv", "runs", "results", "site-packages"}
_OPTIONAL = ("test", "tests", "testing", "dev")
_TARGET = re.compile(r"^(bench\w*)\s*:(?!=)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Proposal:
    """One way to grade the repository. `command`: a line for the shell; empty for its tests. `text`: the proposal in
    words."""

    text: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class Repository:
    """What a repository has that could grade it. `tests`, `benchmarks`: files, relative to the folder; `targets`: of
    its Makefile; `requires`: what pip has to install for them."""

    folder: Path
    tests: tuple[Path, ...]
    benchmarks: tuple[Path, ...]
    targets: tuple[str, ...]
    requires: tuple[str, ...]

    def proposals(self) -> Iterator[Proposal]:
        """Yield the proposals, the best first: a number can be improved for longer than a share of tests."""
        for path in self.benchmarks:
            program = "sh" if path.suffix == ".sh" else "python"
            command = f"{program} {shlex.quote(path.as_posix())}"
            yield Proposal(f"the number that `{command}` prints", command)
        for target in self.targets:
            yield Proposal(f"the number that `make {target}` prints", f"make {target}")
        if self.tests:
            count = f"{len(self.tests)} file{'s' * (len(self.tests) > 1)}"
            yield Proposal(f"the share of its tests that pass ({count}, such as {self.tests[0]})")


def look(folder: Path) -> Repository:
    """Look for what could grade a repository. CoralError if `folder` is no folder."""
    if not folder.is_dir():
        raise CoralError(f"cannot look at {folder}: it is no folder", "name a repository: coral init --from PATH")
    files = list(_files(folder))
    tests = [path for path in files if any(fnmatch(path.name, pattern) for pattern in _TESTS)]
    benchmarks = [path for path in files if any(fnmatch(path.name, pattern) for pattern in _BENCHMARKS)]
    benchmarks = [path for path in benchmarks if path not in tests]
    makefile = folder / "Makefile"
    targets = _TARGET.findall(makefile.read_text("utf-8", "replace")) if makefile.is_file() else []
    return Repository(folder, tuple(tests), tuple(benchmarks[:5]), tuple(targets[:3]), tuple(_requires(folder)))


def propose(repository: Repository, chosen: Proposal, folder: Path, *, larger: bool, objective: str) -> MadeTask:
    """Make the task for `folder`, which is not written yet; CoralError if that lies in the repository. `larger`:
    whether a larger number is better; `objective`: what agents are told, empty for a sentence of ours."""
    source = repository.folder.resolve()
    if folder.resolve().is_relative_to(source):
        hint = f"name one beside it: coral init --from {shlex.quote(str(repository.folder))} DIR"
        raise CoralError(f"cannot make the task in {folder}: agents would see its grader in their seed", hint)
    task: dict[str, Any] = {"name": source.name, "seed": os.path.relpath(source, folder.resolve())}
    made = MadeTask(f"Proposed for the repository {source.name}.", {"task": task})
    grader: dict[str, Any] = {"entry": "grade.py:grade"}
    if chosen.command:
        task["description"] = objective or f"Make the number better that `{chosen.command}` prints."
        grader |= {"direction": "maximize" if larger else "minimize", "args": {"command": chosen.command}}
        grader["args"]["command"], copied = _own_copy(chosen.command, repository.folder)
        made.copies += [(f"{HIDDEN}/{name}", repository.folder / name) for name in copied]
        requires = list(repository.requires)
        kind = "benchmark"
    else:
        task["description"] = objective or "Make all tests pass. You see the tests; the grader has a copy of its own."
        made.copies += [(f"{HIDDEN}/{name}", repository.folder / name) for name in _of_tests(repository)]
        requires = [*(["pytest"] if repository.requires or find_spec("pytest") is None else []), *repository.requires]
        kind = "pytest"
    if made.copies:
        grader["private"] = [HIDDEN]
    if requires:
        grader["setup"] = [f"python -m pip install {shlex.join(requires)}"]
        made.report.append(f"grader.setup installs {', '.join(requires)}, in an environment of the grader's own")
    made.sections |= {"grader": grader, "agents": {"count": 1}, "budget": {"attempts": 20}}
    made.texts["grade.py"] = (_TEMPLATES / kind / "grade.py").read_text(encoding="utf-8")
    return made


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of the repository, relative to it, within DEEPEST and MOST."""
    seen = 0
    for root, folders, names in os.walk(folder):
        below = Path(root).relative_to(folder)
        is_deepest = len(below.parts) >= DEEPEST
        folders[:] = [] if is_deepest else sorted(name for name in folders if not _is_skipped(name))
        seen += len(names)
        if seen > MOST:
            return
        yield from (below / name for name in sorted(names))


def _is_skipped(name: str) -> bool:
    return name in _SKIPPED or name.startswith(".") or name.endswith(".egg-info")


def _of_tests(repository: Repository) -> list[Path]:
    """Return what to copy: the folders `tests` and `test`, and test files and conftest.py that lie beside the code."""
    tops = {path.parts[0] if path.parts[0] in ("tests", "test") else path.as_posix() for path in repository.tests}
    around = {parent / "conftest.py" for path in repository.tests for parent in path.parents}
    tops |= {path.as_posix() for path in around if (repository.folder / path).is_file() and path.parts[0] not in tops}
    return [Path(name) for name in sorted(tops)]


def _own_copy(command: str, folder: Path) -> tuple[str, list[Path]]:
    """Return the command, in which scripts of the repository are replaced by the grader's copies, and what to copy: a
    script at the top of the repository alone, for any other the folder at the top that it lies in."""
    words, copied = shlex.split(command), list[Path]()
    for number, word in enumerate(words[:2]):
        path = Path(word)
        if path.suffix in (".py", ".sh") and not path.is_absolute() and (folder / path).is_file():
            words[number] = f'"$GRADER"/{HIDDEN}/{shlex.quote(path.as_posix())}'
            copied.append(path if len(path.parts) == 1 else Path(path.parts[0]))
        else:
            words[number] = shlex.quote(word)
    return (" ".join([*words[:2], *map(shlex.quote, words[2:])]), copied) if copied else (command, [])


def _requires(folder: Path) -> Iterator[str]:
    """Yield what pip has to install: the dependencies in pyproject.toml, with those for tests, else in
    requirements.txt."""
    try:
        data = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        data = {}
    project = data.get("project") or {}
    optional = project.get("optional-dependencies") or {}
    yield from project.get("dependencies") or ()
    for name in _OPTIONAL:
        yield from optional.get(name) or ()
    for name in () if data else ("requirements.txt", "requirements-dev.txt"):
        if (folder / name).is_file():
            lines = (
                line.partition("#")[0].strip() for line in (folder / name).read_text("utf-8", "replace").splitlines()
            )
            yield from (line for line in lines if line and not line.startswith("-"))
