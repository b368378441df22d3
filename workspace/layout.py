"""All paths of a run; finds runs, and makes the folder of a new one.

Nothing about a run is stored outside its folder, so that a copied or moved run's folder is found and works. Two starts
never share a folder, because it is made by an exclusive mkdir.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

OPERATOR = "operator"
SHARED = ".shared"  # in a clone: a link to the knowledge that its agent reads and writes
_PACKAGE_FOLDERS = ("attempts", "heartbeats", "workspace")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def plain(name: str) -> str:
    """Return `name` if it is one visible folder name, else ValueError; names come from task files, and `../x` would
    leave the run."""
    if not name or name.startswith(".") or "/" in name or "\0" in name or len(name.encode()) > 200:
        raise ValueError(f"not a plain folder name: {name!r}")
    return name


def leads_outside(path: str) -> bool:
    """Return whether a path that must stay in its folder is absolute, or leaves the folder by `..`."""
    return PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts


class _Below:
    """A path relative to the root of a layout, as an attribute of `Layout`."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __get__(self, layout: Layout, _: type[Layout]) -> Path:
        return layout.root / self._path


class Layout:
    """The paths of one run. Nothing here touches the disk."""

    # No dataclass: to import what makes one takes 6 ms, and `coral eval` needs a layout before it can start git.
    def __init__(self, root: Path) -> None:
        self.root = root

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self.root == other.root

    def __hash__(self) -> int:
        return hash(self.root)

    def __repr__(self) -> str:
        return f"Layout({self.root!r})"

    attempts = _Below("attempts")
    heartbeats = _Below("heartbeats")
    requests = _Below("requests")
    hub = _Below("workspace/hub.git")
    agents = _Below("workspace/agents")
    shared = _Below("workspace/shared")
    history = _Below("workspace/history.git")  # of the shared knowledge
    states = _Below("workspace/state")
    logs_of_all = _Below("logs")
    events = _Below("logs/events.jsonl")  # the timeline for people
    supervisor_beats = _Below("logs/beats.jsonl")
    status = _Below("status.json")
    private = _Below("private")
    journal = _Below("private/journal")
    ledger = _Below("private/ledger.sqlite")  # the records as the supervisor knows them
    task_file = _Below("private/task.yaml")
    task_source = _Below("private/task.source.yaml")  # the file as the task's author wrote it
    grader = _Below("private/grader")
    hub_config = _Below("private/hub.config")  # a copy of the hub's configuration, as it was made
    hub_packs = _Below("private/packs")  # copies of the hub's packs, see `workspace.packs`
    seed_commit = _Below("private/seed")  # the commit that agents start from, in the hub
    staged_task = _Below("private/reload")  # a changed task that a resume takes in
    holdout = _Below("private/holdout")  # the files of its grader
    venvs = _Below("private/venvs")  # environments of the grader, if it has one of its own
    holdout_scores = _Below("private/holdout.json")
    verified = _Below("private/verified.json")  # results of grading attempts again for the operator
    notified = _Below("private/notified")  # which alerts were sent to whom
    notes_looked = _Below("private/notes-looked.json")  # when the operator last looked at the notes
    skill_tests = _Below("private/skill-tests.json")  # results of tests of skills, by the folder of the skill
    checklist = _Below("private/HEARTBEAT.md")  # the task's own, if it has one
    launch_secret = _Below("private/launch.secret")  # by which tags of launches cannot be guessed
    lock = _Below("private/supervisor.lock")
    log = _Below("private/supervisor.log")

    def requests_of(self, sender: str) -> Path:
        """Return the folder into which one agent, or the operator, puts requests."""
        return self.requests / plain(sender)

    def replies_to(self, sender: str) -> Path:
        """Return the folder in which the supervisor answers requests; no agent may be named `replies`."""
        return self.requests / "replies" / plain(sender)

    def clone(self, agent: str) -> Path:
        return self.agents / plain(agent)

    def state(self, agent: str) -> Path:
        """Return the folder in which the agent's program keeps sessions and settings."""
        return self.states / plain(agent)

    def pulses(self, agent: str) -> Path:
        """Return the file to which pulses write beats in programs that the agent runs."""
        return self.state(agent) / "beats.jsonl"

    def shared_of(self, agent: str, share: bool) -> Path:
        """Return the knowledge folder that this agent reads and writes: the fleet's if `share`, else one of its own."""
        return self.shared if share else self.root / "workspace" / "alone" / plain(agent)

    def logs(self, agent: str) -> Path:
        return self.logs_of_all / plain(agent)

    def prompt(self, agent: str, launch: int) -> Path:
        """Return the file that the launch reads on its standard input."""
        return self.logs(agent) / f"{launch:04d}.prompt.md"

    def output(self, agent: str, launch: int) -> Path:
        return self.logs(agent) / f"{launch:04d}.jsonl"

    def errors(self, agent: str, launch: int) -> Path:
        return self.logs(agent) / f"{launch:04d}.err"

    def job(self, agent: str, number: int) -> Path:
        return self.logs(agent) / f"job-{number}.json"

    def job_code(self, agent: str, number: int) -> Path:
        """Return the file with the exit code of a job's command, as a shell gives it."""
        return self.logs(agent) / f"job-{number}.code"

    def job_output(self, agent: str, number: int) -> Path:
        return self.logs(agent) / f"job-{number}.out"

    def beats(self, agent: str) -> Path:
        return self.logs(agent) / "beats.jsonl"

    def grade(self, number: int) -> Path:
        """Return the folder for feedback and artifacts that the grader declared: agents may read them."""
        return self.root / "grades" / str(number)

    def instructions(self, agent: str) -> Path:
        """Return the file with the instructions of an agent, from which its clone's instruction file is restored."""
        return self.private / "instructions" / f"{plain(agent)}.json"

    def check(self, agent: str) -> Path:
        """Return the file that names the task's public check, `file.py:function`, or is empty; sealed agents cannot
        read the task itself."""
        return self.clone(agent) / ".git" / "coral-check"

    def grading(self, number: int) -> Path:
        """Return the working folder of one grade: the checkout, the raw output."""
        return self.private / "grading" / str(number)


def new_run(runs: Path, task: str) -> Layout:
    """Make `runs/<task>/<yyyymmdd-HHMMSS-xxxx>` (UTC); the last part is the fraction of the second, so that names sort
    by time."""
    folder = runs / plain(task)
    folder.mkdir(parents=True, exist_ok=True)
    moment = datetime.now(UTC)
    while True:
        root = folder / f"{moment:%Y%m%d-%H%M%S}-{_base36(moment.microsecond)}"
        try:
            root.mkdir()
        except FileExistsError:
            moment += timedelta(microseconds=1)
        else:
            return Layout(root.resolve())


def closed_folders(layout: Layout) -> tuple[Path, ...]:
    """Return the folders that hold answers, keys or conversations: only their owner can open them."""
    return layout.private, layout.logs_of_all, layout.states


def folders(layout: Layout, agents: Iterable[str]) -> list[Path]:
    """Return the folders that a run with these agents has from its beginning; a folder inside another comes after
    it."""
    names = list(agents)
    plain_ones = (layout.agents, layout.shared, layout.history, layout.root / "grades")
    found = [*closed_folders(layout), layout.attempts, layout.heartbeats, *plain_ones]
    for sender in (*names, OPERATOR):
        found += [layout.requests_of(sender), layout.replies_to(sender)]
    for agent in names:
        found += [layout.state(agent), layout.logs(agent)]
    return found


def create(layout: Layout, agents: Iterable[str]) -> None:
    """Make the run's folders; those that exist stay as they are."""
    for folder in closed_folders(layout):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    for folder in folders(layout, agents):
        folder.mkdir(parents=True, exist_ok=True)


def folder_of_runs(layout: Layout) -> Path:
    """Return the folder `runs` that the run is in; the run's own folder if it was moved elsewhere."""
    return next((folder for folder in layout.root.parents[:2] if folder.name == "runs"), layout.root)


def can_see_private(layout: Layout) -> bool:
    """Return whether this process can read the run's private folder: a sealed agent cannot find it, or not open it."""
    try:
        os.close(os.open(layout.private, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def find_run(cwd: Path) -> Layout | None:
    """Return the run that `cwd` is in: the nearest folder above with the folders of a run, `private` among them."""
    runs = (folder for folder in _upwards(cwd) if _is_run(folder) and (folder / "private").is_dir())
    return next(map(Layout, runs), None)


def find_agent(cwd: Path) -> tuple[Layout, str] | None:
    """Return the run and the agent whose clone `cwd` is in. Does not need `private`, which a sealed agent cannot
    see."""
    for folder in _upwards(cwd):
        if folder.parent.name == "agents" and folder.parent.parent.name == "workspace":
            root = folder.parent.parent.parent
            if _is_run(root):
                return Layout(root), folder.name
    return None


def slug(name: str) -> str:
    """Return the name of the folder for a task's runs: small letters, digits, single dashes; at most 60 characters."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60].strip("-")


def runs_under(folder: Path) -> list[Layout]:
    """Return the runs in `folder`, or one level deeper in `<folder>/<task>`, newest first; each once, whatever links
    lead to it."""
    children = _folders(folder)
    grandchildren = [run for child in children if not _is_run(child) for run in _folders(child)]
    found = {path.resolve() for path in (*children, *grandchildren) if _is_run(path)}
    return [Layout(path) for path in sorted(found, key=lambda path: (path.name, str(path)), reverse=True)]


def find_runs(cwd: Path) -> Path | None:
    """Return the nearest `runs` folder, in `cwd` or above it, that has a run in it."""
    return next((folder / "runs" for folder in _upwards(cwd) if runs_under(folder / "runs")), None)


def _upwards(cwd: Path) -> tuple[Path, ...]:
    here = cwd.resolve()
    return (here, *here.parents)


def _is_run(folder: Path) -> bool:
    return all((folder / folder_name).is_dir() for folder_name in _PACKAGE_FOLDERS)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except OSError:
        return []  # absent or unreadable: no runs here


def _base36(number: int) -> str:
    """Return the number in base 36, with four digits: 36**4 is more than the microseconds of a second."""
    digits = ""
    for _ in range(4):
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits
