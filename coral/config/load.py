"""A task folder into a Config: everything that is wrong is found at once, before anything is started."""

import contextlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from coral.config import document as yaml
from coral.config import overrides as command_line
from coral.config import validate
from coral.config.agents import AgentsSection, SessionSection
from coral.config.document import Document
from coral.config.files import file_problems
from coral.config.freeze import ORIGIN, frozen
from coral.config.heartbeats import settle
from coral.config.model import (
    BudgetSection,
    GraderSection,
    RunSection,
    TaskFile,
    TaskSection,
    WorkspaceSection,
    slug,
)
from coral.config.paths import part_problems, parts_of, with_roles
from coral.config.problem import Problem, refuse
from coral.config.section import Section
from coral.errors import CoralError
from coral.runtimes.registry import find
from heartbeats.heartbeat import Heartbeat

S = TypeVar("S", bound=BaseModel)
TASK_FILE = "task.yaml"
OTHERS: dict[str, type[Section]] = {
    "session": SessionSection,
    "workspace": WorkspaceSection,
    "budget": BudgetSection,
    "run": RunSection,
}
LARGEST = 200_000  # bytes; a task is a page of text, and reading YAML takes its time
LARGEST_FROZEN = 10 * LARGEST  # the same with every default and escape written out


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked task. `folder` is where its relative paths start; `text` is what a run keeps of it."""

    path: Path
    folder: Path
    text: str
    task: TaskSection
    grader: GraderSection
    agents: AgentsSection
    session: SessionSection
    heartbeats: tuple[Heartbeat, ...]
    workspace: WorkspaceSection
    budget: BudgetSection
    run: RunSection

    @property
    def slug(self) -> str:
        """The name of the folder that holds the runs of this task."""
        return slug(self.task.name)

    @property
    def seed(self) -> Path:
        return self.folder / Path(self.task.seed).expanduser()


def find_task(start: Path) -> Path | None:
    """The task file of the folder or of the closest folder above it."""
    start = start.absolute()
    return next((at / TASK_FILE for at in (start, *start.parents) if (at / TASK_FILE).is_file()), None)


def load(task: Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check a task, given by its folder or its file. Raises CoralError with every problem it has."""
    path = task / TASK_FILE if task.is_dir() else task
    return _build(path, path.absolute(), yaml.read(_text(path, LARGEST)), overrides, files=True)


def load_frozen(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read what a run keeps of its task. The task's own folder is not looked at: it may have changed since."""
    document = yaml.read(_text(path, LARGEST_FROZEN))
    origin = document.data.pop(ORIGIN, None) if isinstance(document.data, dict) else None
    if not isinstance(origin, str):
        raise CoralError(
            f"cannot read {path}: it is not the task of a run", "a run's task is private/task.yaml in its folder"
        )
    return _build(path, Path(origin), document, overrides, files=False)


def _text(path: Path, limit: int) -> str:
    try:
        found = path.stat()
        # A pipe would be waited for.
        raw = path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= limit else b"\0"
    except FileNotFoundError:
        raise CoralError(f"cannot read the task: no file {path}", "`coral init` makes a task that works") from None
    except OSError as error:
        raise CoralError(f"cannot read the task: {path}: {error.strerror}", "it must be a readable file") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        most = f"{limit // 1000} kB"
        raise CoralError(f"cannot read the task: {path} is not a text in UTF-8 of at most {most}", "it must be YAML")
    return text


def _build(shown: Path, path: Path, document: Document, overrides: Sequence[str], *, files: bool) -> Config:
    problems, name = document.problems, str(shown)
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "must hold sections, not a list or a single value"
        refuse(name, problems or [Problem((), what)], document.marks)
    command_line.apply(document, overrides)
    config = _checked(path, document.data if isinstance(document.data, dict) else {}, problems, files=files)
    refuse(name, problems, document.marks)
    assert config is not None, "a section that cannot be read has noted its problem"
    return config


def _checked(path: Path, values: Mapping[str, object], problems: list[Problem], *, files: bool) -> Config | None:
    """The Config, or None after the problems of every section were noted."""

    def read(kind: type[S], name: str) -> S | None:
        return validate.section(kind, values.get(name), (name,), problems)

    validate.strangers(values, problems)
    task, grader = read(TaskSection, "task"), read(GraderSection, "grader")
    agents = read(AgentsSection, "agents")
    for name, kind in OTHERS.items():
        read(kind, name)
    heartbeats = settle(validate.heartbeats(values.get("heartbeats"), problems), problems)
    if files:
        problems += file_problems(task, grader, path.parent)
        problems += part_problems(agents, task, grader, path.parent) if agents else []
    problems += _research_problems(agents) if agents else []
    if problems:
        return None
    whole = TaskFile.model_validate({name: section for name, section in values.items() if section is not None})
    if files:
        whole = whole.model_copy(update={"agents": with_roles(whole.agents, path.parent)})
    return Config(
        path=path,
        folder=path.parent,
        text=frozen(path, whole),
        task=whole.task,
        grader=whole.grader,
        agents=whole.agents,
        session=whole.session,
        heartbeats=heartbeats,
        workspace=whole.workspace,
        budget=whole.budget,
        run=whole.run,
    )


def _research_problems(agents: AgentsSection) -> Iterator[Problem]:
    """Of agents that are to read first, and cannot. A runtime that is not there is refused where agents are started."""
    for where, part in parts_of(agents):
        with contextlib.suppress(CoralError):
            if part.research is not None and not find(part.runtime, part.options).can_research:
                yield Problem((*where, "research"), f"{part.runtime} agents do not read first: leave it out")
