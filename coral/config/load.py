"""Loads a task as a Config, and finds all its problems at once, before anything is started.

A run keeps a copy with every key and its value, so that new defaults cannot change an old run. Its own YAML writer
guarantees that the copy is read back exactly: general writers fold some texts and change some control characters.
"""

import contextlib
import json
import math
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from attempts.files import expanded, read_bytes
from coral.config import document as yaml, validate
from coral.config.alerts import AlertsSection
from coral.config.budget import BudgetSection
from coral.config.document import Document, Problem, apply_overrides, refuse
from coral.config.model import (
    GRADER_KINDS,
    AgentsSection,
    GraderSection,
    HoldoutSection,
    RunSection,
    TaskFile,
    TaskSection,
    WorkspaceSection,
)
from coral.config.other_format import is_other, translate
from coral.config.paths import assignments_in, path_problems, with_option_paths, with_roles
from coral.config.section import Section
from coral.config.session import SessionSection
from coral.config.translation import Translation
from coral.config.validate import read_heartbeats
from coral.errors import CoralError
from coral.runtimes.registry import find
from heartbeats.heartbeat import BUILT_IN, Heartbeat
from workspace.layout import slug

TASK_FILE = "task.yaml"
CHECKLIST = "HEARTBEAT.md"
SECTIONS = {
    name: field.annotation
    for name, field in TaskFile.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}
LARGEST = 200_000  # bytes; a task is a page of text, and YAML is slow to read
LARGEST_CHECKLIST = 20_000  # bytes; it is read at each checkpoint
LARGEST_FROZEN = 10 * LARGEST  # with every default and escape written out
ORIGIN, OVERRIDES = "origin", "overrides"
_HEAD = """\
# The task of this run, with its overrides and defaults. `origin` is the file it came from, `overrides` are those that
# were given at the start and at each resume.
"""
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NOT_TEXT = frozenset({"true", "false", "null"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A checked task. `folder`: where its relative paths start. `text`: the frozen copy that a run keeps. `overrides`:
    all that were given, at the start and at each resume. `translated`: the report of the translation, line by line, of
    a task of the other CORAL; None for a task of ours."""

    path: Path
    folder: Path
    text: str
    overrides: tuple[str, ...]
    task: TaskSection
    grader: GraderSection
    holdout: HoldoutSection
    agents: AgentsSection
    session: SessionSection
    heartbeats: tuple[Heartbeat, ...]
    workspace: WorkspaceSection
    budget: BudgetSection
    alerts: AlertsSection
    run: RunSection
    translated: tuple[str, ...] | None = None

    @property
    def slug(self) -> str:
        """The name of the folder of this task's runs."""
        return slug(self.task.name)

    @property
    def holdout_grader(self) -> GraderSection | None:
        """The grader that scores attempts on the hold-out; None without a hold-out."""
        return _over(self.grader, self.holdout) if self.holdout.is_given else None

    @property
    def changed_heartbeats(self) -> tuple[Heartbeat, ...]:
        """The heartbeats that are not as the built-in ones."""
        as_built_in = [(replace(heartbeat, by="built-in"), heartbeat) for heartbeat in self.heartbeats]
        return tuple(heartbeat for plain, heartbeat in as_built_in if plain not in BUILT_IN)

    @property
    def heartbeats_off(self) -> tuple[str, ...]:
        """The names of the built-in heartbeats that the task has taken away."""
        names = {heartbeat.name for heartbeat in self.heartbeats}
        return tuple(built_in.name for built_in in BUILT_IN if built_in.name not in names)

    @property
    def seed(self) -> Path:
        return self.folder / expanded(self.task.seed)


def _over(grader: GraderSection, holdout: HoldoutSection) -> GraderSection:
    """Return the hold-out's grader: the section `grader`, changed by what the section `holdout` sets."""
    changed: dict[str, object] = {"timeout": holdout.timeout or grader.timeout}
    changed |= {"args": {**grader.args, **holdout.args}, "private": (*grader.private, *holdout.private)}
    if holdout.entry or holdout.command:
        changed |= {kind: getattr(holdout, kind) for kind in GRADER_KINDS}
    return grader.model_copy(update=changed)


def load(task: Path, overrides: Sequence[str] = ()) -> Config:
    """Read and check the task of a folder, or a task file. CoralError lists every problem."""
    path = task / TASK_FILE if task.is_dir() else task
    document, folder = yaml.read(_text(path, LARGEST)), path.absolute().parent
    if not is_other(document, folder):
        return _build(path, path.absolute(), document, overrides, files=True)
    made = translate(document, folder, overrides)
    config = _build(path, path.absolute(), made.document, overrides, files=True)
    return replace(config, translated=tuple(made.lines))


def translation_of(path: Path) -> Translation | None:
    """Translate a task file of the other CORAL; return None for one of ours. CoralError if it cannot be read."""
    document, folder = yaml.read(_text(path, LARGEST)), path.absolute().parent
    return translate(document, folder, ()) if is_other(document, folder) else None


def load_frozen(path: Path, overrides: Sequence[str] = ()) -> Config:
    """Read a run's frozen copy of its task. The task's own folder is not read: it may have changed since."""
    document = yaml.read(_text(path, LARGEST_FROZEN))
    data = document.data if isinstance(document.data, dict) else {}
    origin, given = data.pop(ORIGIN, None), data.pop(OVERRIDES, None) or []
    if not isinstance(origin, str) or not isinstance(given, list):
        hint = "a run's task is private/task.yaml in its folder"
        raise CoralError(f"cannot read {path}: it is not the task of a run", hint)
    return _build(path, Path(origin), document, overrides, files=False, given=tuple(map(str, given)))


def checklist(config: Config) -> str | None:
    """Return the text of the checklist beside task.yaml, which agents go through at each checkpoint; None if there is
    none."""
    path = config.folder / CHECKLIST
    try:
        return read_bytes(path.resolve(), LARGEST_CHECKLIST).decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:  # also for what is no UTF-8
        raise CoralError(f"cannot read the checklist: {path}: {error}", "it must be a text in UTF-8") from error


def _text(path: Path, limit: int) -> str:
    try:
        found = path.stat()
        # Reading a pipe would wait for a writer.
        raw = path.read_bytes() if stat.S_ISREG(found.st_mode) and found.st_size <= limit else b"\0"
    except FileNotFoundError:
        hint = "`coral init` makes a task that works"
        if (path.parent / "evaluator.py").is_file():
            hint = f"`coral import {path.parent}` makes a task of a folder for OpenEvolve"
        raise CoralError(f"cannot read the task: no file {path}", hint) from None
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


def _build(
    shown: Path,
    path: Path,
    document: Document,
    overrides: Sequence[str],
    *,
    files: bool,
    given: tuple[str, ...] = (),
) -> Config:
    """Build the Config of a document; CoralError lists its problems. `given`: overrides that it has in it already."""
    problems, name = document.problems, str(shown)
    if not isinstance(document.data, dict):
        what = "is empty" if document.data is None else "must hold sections, not a list or a single value"
        refuse(name, problems or [Problem((), what)], document.marks)
    apply_overrides(document, overrides)
    values = document.data if isinstance(document.data, dict) else {}
    config = _checked(path, values, (*given, *overrides), problems, files=files, is_new=files or bool(overrides))
    refuse(name, problems, document.marks)
    assert config is not None, "a section that cannot be read has added its problem"
    return config


def _checked(
    path: Path,
    values: Mapping[str, object],
    overrides: tuple[str, ...],
    problems: list[Problem],
    *,
    files: bool,
    is_new: bool,
) -> Config | None:
    """Return the Config; None if a section has problems, which are added to `problems`. `is_new`: whether its options
    of runtimes can be others than those of a frozen copy, whose paths are absolute."""
    validate.unknown_sections(values, problems)
    found: dict[str, Any] = {
        name: validate.section(kind, values.get(name), (name,), problems) for name, kind in SECTIONS.items()
    }
    task, agents = found["task"], found["agents"]
    heartbeats = read_heartbeats(values.get("heartbeats"), problems)
    if files:
        graders = {name: found[name] for name in ("grader", "holdout") if found[name]}
        problems += path_problems(task, graders, agents, path.parent)
    problems += _research_problems(agents) if agents else []
    if problems:
        return None
    whole = TaskFile.model_validate({name: section for name, section in values.items() if section is not None})
    if files:
        whole = whole.model_copy(update={"agents": with_roles(whole.agents, path.parent)})
    if is_new:
        whole = whole.model_copy(update={"agents": with_option_paths(whole.agents, path.parent)})
    text = frozen(path, whole, overrides)
    parts = {**dict(whole), "heartbeats": heartbeats}
    return Config(path=path, folder=path.parent, text=text, overrides=overrides, **parts)


def _research_problems(agents: AgentsSection) -> Iterator[Problem]:
    """Yield a problem for each assignment with `research` whose runtime has none. `Roster` refuses unknown runtimes."""
    for where, assignment in assignments_in(agents):
        with contextlib.suppress(CoralError):
            if assignment.research is not None and not find(assignment.runtime, assignment.options).can_research:
                yield Problem((*where, "research"), f"{assignment.runtime} agents do no research: leave it out")


def frozen(origin: Path, task: TaskFile, overrides: Sequence[str] = ()) -> str:
    """Return the task as YAML, which `load_frozen` reads back to the same values."""
    return _HEAD + write({ORIGIN: str(origin), OVERRIDES: list(overrides), **task.model_dump()})


def write(data: Mapping[str, object]) -> str:
    """Return plain data as YAML, which `document.read` reads back to the same data."""
    return "".join(f"{line}\n" for line in _lines(data, 0))


def _lines(value: Mapping[str, object] | Sequence[object], depth: int) -> Iterator[str]:
    pairs = value.items() if isinstance(value, Mapping) else ((None, item) for item in value)
    for key, inner in pairs:
        lead = "  " * depth + ("-" if key is None else f"{_key(key)}:")
        if isinstance(inner, Mapping | list | tuple) and inner:
            yield lead
            yield from _lines(inner, depth + 1)
        elif isinstance(inner, str) and _fits_a_block(inner):
            yield f"{lead} |2{'' if inner.endswith(chr(10)) else '-'}"
            yield from ("  " * (depth + 1) + line if line else "" for line in inner.removesuffix("\n").split("\n"))
        else:
            yield f"{lead} {_scalar(inner)}"


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) and key.lower() not in _NOT_TEXT else quoted(key)


def _fits_a_block(text: str) -> bool:
    """Return whether a text can be a YAML block: several lines of printable characters, at most one newline last."""
    lines = text.removesuffix("\n").split("\n")
    return len(lines) > 1 and bool(lines[-1].strip()) and all(line.isprintable() for line in lines)


def _scalar(value: object) -> str:
    """Write a value as JSON does, which YAML 1.2 reads as well; but JSON has no infinity and no NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    return quoted(value) if isinstance(value, str) else json.dumps(value)


def quoted(text: str) -> str:
    """Return any text as a YAML scalar."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
