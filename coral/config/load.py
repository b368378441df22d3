"""Loads a task as a Config, and finds all its problems at once, before anything is started."""

import contextlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coral.config import document as yaml
from coral.config import validate
from coral.config.document import Document, Problem, apply_overrides, refuse
from coral.config.freeze import ORIGIN, frozen
from coral.config.model import (
    AgentsSection,
    BudgetSection,
    GraderSection,
    RunSection,
    Section,
    SessionSection,
    TaskFile,
    TaskSection,
    WorkspaceSection,
    slug,
)
from coral.config.paths import assignments_in, path_problems, with_roles
from coral.config.validate import read_heartbeats
from coral.errors import CoralError
from coral.runtimes.registry import find
from heartbeats.heartbeat import Heartbeat

TASK_FILE = "task.yaml"
SECTIONS = {
    name: field.annotation
    for name, field in TaskFile.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
LARGEST = 200_000  # bytes; a task is a page of text, and YAML is slow to read
LARGEST_FROZEN = 10 * LARGEST  # with every default and escape written out


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked task. `folder`: where its relative paths start. `text`: the frozen copy that a run keeps."""

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
        """The name of the folder of this task's runs."""
        return slug(self.task.name)

    @property
    def seed(self) -> Path:
        return self.folder / Path(self.task.seed).expanduser()


def find_task(start: Path) -> Path | None:
    """The task file in the folder, or in the closest folder above it."""
    start = start.absolute()
    return next((at / TASK_FILE for at in (start, *start.parents) if (at / TASK_FILE).is_file()), None)


def load(task: Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check the task of a folder, or a task file. CoralError lists every problem."""
    path = task / TASK_FILE if task.is_dir() else task
    return _build(path, path.absolute(), yaml.read(_text(path, LARGEST)), overrides, files=True)


def load_frozen(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a run's frozen copy of its task. The task's own folder is not read: it may have changed since."""
    document = yaml.read(_text(path, LARGEST_FROZEN))
    origin = document.data.pop(ORIGIN, None) if isinstance(document.data, dict) else None
    if not isinstance(origin, str):
        hint = "a run's task is private/task.yaml in its folder"
        raise CoralError(f"cannot read {path}: it is not the task of a run", hint)
    return _build(path, Path(origin), document, overrides, files=False)


def _text(path: Path, limit: int) -> str:
    try:
        found = path.stat()
        # Reading a pipe would wait for a writer.
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
    apply_overrides(document, overrides)
    config = _checked(path, document.data if isinstance(document.data, dict) else {}, problems, files=files)
    refuse(name, problems, document.marks)
    assert config is not None, "a section that cannot be read has added its problem"
    return config


def _checked(path: Path, values: Mapping[str, object], problems: list[Problem], *, files: bool) -> Config | None:
    """The Config; None if a section has problems, which are added."""
    validate.unknown_sections(values, problems)
    found: dict[str, Any] = {
        name: validate.section(kind, values.get(name), (name,), problems) for name, kind in SECTIONS.items()
    }
    task, grader, agents = found["task"], found["grader"], found["agents"]
    heartbeats = read_heartbeats(values.get("heartbeats"), problems)
    if files:
        problems += path_problems(task, grader, agents, path.parent)
    problems += _research_problems(agents) if agents else []
    if problems:
        return None
    whole = TaskFile.model_validate({name: section for name, section in values.items() if section is not None})
    if files:
        whole = whole.model_copy(update={"agents": with_roles(whole.agents, path.parent)})
    text = frozen(path, whole)
    return Config(path=path, folder=path.parent, text=text, **{**dict(whole), "heartbeats": heartbeats})


def _research_problems(agents: AgentsSection) -> Iterator[Problem]:
    """Of agents that cannot do research. `Roster` refuses a runtime that does not exist."""
    for where, assignment in assignments_in(agents):
        with contextlib.suppress(CoralError):
            if assignment.research is not None and not find(assignment.runtime, assignment.options).can_research:
                yield Problem((*where, "research"), f"{assignment.runtime} agents do no research: leave it out")
