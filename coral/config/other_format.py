"""Reads a task of the other CORAL as one of ours. It writes no file, and reports what has no counterpart.

docs/import.md tells users what comes of each key. Such a task has `grader.entrypoint` or a file `eval/grader.py`, and
neither `grader.entry` nor `grader.command`. Its paths are relative to its folder, except `workspace.repo_path`, which
is relative to the current folder.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from attempts.files import expanded
from coral.config.document import Document, shown
from coral.config.interpolation import interpolate
from coral.config.model import GRADER_KINDS
from coral.config.other_agents import read_agents, read_heartbeats
from coral.config.section import DAY
from coral.config.translation import Translation, texts, unknown, whole

GRADER = Path("eval", "grader.py")
CLASS = "Grader"
SEED = "seed"
SHARED_DIR = ".shared"  # where agents find the shared knowledge in their clone: workspace.clone_overlay
ANSWER_SECONDS = 30  # coral.grader.task_grader.MARGIN: a grader's own timeout is shorter by this
NO_TIMEOUT = 30 * DAY
UV_CACHE = "~/.cache/uv"
MOST_SOURCES = 200  # files of a grader that are looked at
_EMPTY = Path(__file__).parents[1] / "templates" / "empty"
# Modules of the other system that some graders import, and that are not here.
_FOREIGN = re.compile(r"^\s*(?:from|import)\s+(coral\.(?:agent|hub|workspace|config)\b[\w.]*)", re.MULTILINE)
_SECTIONS = {"task", "grader", "agents", "workspace", "run", "sharing"}
_NO_COUNTERPART = {
    "grader.max_pending_per_agent": "an agent may always submit; the queue is bounded by grader.slots",
    "workspace.run_dir": "a run has a folder of its own below workspace.runs",
    "run.docker_image": "agents run on this machine, sealed: docs/trust.md",
}


def is_other(document: Document, folder: Path) -> bool:
    """Return whether a document is a task of the other CORAL."""
    data = document.data
    if not isinstance(data, dict):
        return False
    grader = data.get("grader") or {}
    if not isinstance(grader, dict) or any(grader.get(kind) for kind in GRADER_KINDS):
        return False
    return bool(grader.get("entrypoint")) or (folder / GRADER).is_file()


def translate(document: Document, folder: Path, overrides: Sequence[str]) -> Translation:
    """Translate a task. `overrides`: those of the command line; where they name a runtime, `model` is left out."""
    interpolate(document)
    made = Translation(document, folder)
    _task(made)
    _seed(made)
    _grader(made)
    runtimes = [text.partition("=")[2].strip() for text in overrides if text.startswith("agents.runtime=")]
    read_agents(made, chosen=runtimes[-1] if runtimes else "")
    read_heartbeats(made)
    made.move("workspace.runs", "workspace.results_dir", str)
    made.move("workspace.setup", "workspace.setup", texts)
    for name, value in (document.data if isinstance(document.data, dict) else {}).items():
        if name not in _SECTIONS:
            made.leave(name, f"unknown section (with {shown(value)}), left out")
    for key, why in _NO_COUNTERPART.items():
        section, _, name = key.partition(".")
        if made.section(section).get(name) not in (None, "", 1):
            made.leave(key, f"no counterpart: {why}")
    return made


def _task(made: Translation) -> None:
    def text(value: Any) -> str:
        return str(value).replace("{shared_dir}", SHARED_DIR)

    for name in ("name", "description", "tips"):
        made.move(f"task.{name}", f"task.{name}", text)
    unknown(made, "task", made.section("task"), {"name", "description", "tips"})


def _seed(made: Translation) -> None:
    """Set `task.seed`: the folder `seed` of the task, or else what `workspace.repo_path` names. That path is relative
    to the current folder; where it leads to no folder, it is looked up in the task's folder too."""
    own, given = made.folder / SEED, made.section("workspace").get("repo_path")
    named = expanded(str(given)).resolve() if given else None
    beside = (made.folder / str(given)).resolve() if given else None
    repository = next((path for path in (named, beside) if path is not None and path.is_dir()), None)
    holds_task = repository is not None and made.folder.resolve().is_relative_to(repository)
    if own.is_dir():
        made.put("task.seed", SEED, "workspace.repo_path")
        if repository not in (None, own.resolve()) and not holds_task:
            made.below = repository
            made.leave("workspace.repo_path", "left out, agents begin at seed alone: `coral import` joins the two")
        return
    if repository is not None and not holds_task:
        made.put("task.seed", str(repository), "workspace.repo_path")
        return
    made.put("task.seed", str(_EMPTY), "workspace.repo_path")
    made.say(f"seed: there is no folder {own}: agents begin with an empty one")


def _grader(made: Translation) -> None:
    given = made.section("grader")
    entrypoint = str(given.get("entrypoint") or "")
    made.put("grader.entry", entrypoint or f"{GRADER.as_posix()}:{CLASS}", "grader.entrypoint")
    for name in ("args", "direction"):
        made.move(f"grader.{name}", f"grader.{name}")
    made.move("grader.setup", "grader.setup", texts)
    made.put("grader.seed_may_fail", True, "grader")  # no seed is graded there before agents begin
    seconds = whole(given.get("timeout", 300))
    if isinstance(seconds, int):
        made.put("grader.timeout", NO_TIMEOUT if seconds == 0 else seconds + ANSWER_SECONDS, "grader.timeout")
    else:
        made.put("grader.timeout", seconds, "grader.timeout")
    parallel = made.keys(("grader", "parallel"), given.get("parallel"))
    if parallel.get("max_workers") is not None:
        made.put("grader.slots", whole(parallel["max_workers"]), "grader.parallel.max_workers")
    private = list(given.get("private") or ()) if isinstance(given.get("private") or [], list) else [given["private"]]
    inside = [_inside(made, str(name)) for name in private]
    if entrypoint and (made.folder / GRADER.parent).is_dir():
        inside.append(GRADER.parent.as_posix())
    if inside:
        made.put("grader.private", inside, "grader.private")
    known = {"entrypoint", "args", "direction", "setup", "timeout", "parallel", "private", "max_pending_per_agent"}
    unknown(made, "grader", given, known)
    _needs(made)


def _inside(made: Translation, name: str) -> str:
    """Return a path relative to the task's folder if it is an absolute one below that; else unchanged."""
    path = expanded(name)
    folder = made.folder.resolve()
    return path.relative_to(folder).as_posix() if path.is_absolute() and path.is_relative_to(folder) else name


def _needs(made: Translation) -> None:
    """Report what the grader's files use that is missing here, and allow the network and the cache of uv if they use
    uv."""
    for path in sorted((made.folder / GRADER.parent).glob("*")):
        if path.is_symlink() and not path.exists():
            made.say(f"eval/{path.name}: a link to nothing, left out")
    sources = list(_sources(made))
    for module in sorted({module for text in sources for module in _FOREIGN.findall(text)}):
        made.say(f"grader: it imports {module} of the other system, which is not here: it fails where it uses that")
    project = made.folder / SEED / "pyproject.toml"
    uses_uv = any("get_python_command" in text or "uv run" in text for text in sources)
    if uses_uv and project.is_file() and shutil.which("uv"):
        made.put("grader.network", True, "grader")
        made.put("grader.writable", [UV_CACHE], "grader")
        made.say(
            f"grader: network: true, writable: [{UV_CACHE}], since uv installs what the seed's pyproject.toml names"
        )


def _sources(made: Translation) -> Iterator[str]:
    """Yield the texts of the grader's Python files."""
    seed = made.folder / SEED
    paths = (path for path in made.folder.rglob("*.py") if not path.is_relative_to(seed) and path.is_file())
    for path in islice(paths, MOST_SOURCES):
        yield path.read_text(encoding="utf-8", errors="replace")
