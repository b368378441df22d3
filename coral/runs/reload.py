"""Takes a task that has changed since the start into its run: `coral resume --reload`.

`stage` prepares everything in a new folder, and grades the seed; `install` puts it in the place of the run's copies. An
incomplete staged task is ignored, and installing one twice does no harm. It stays until the journal says that the run
goes on with it: whenever the process dies, the next supervisor has either the old task or the new one.
"""

import contextlib
import filecmp
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from attempts.files import parse_object, read_bytes, write_json
from attempts.record import Attempt, attempt_from_dict, to_dict
from coral.agent_setup.clone import renew_instructions
from coral.agent_setup.prices import check_enforceable, check_unlimited
from coral.agent_setup.roster import Roster, check_same_programs
from coral.config.load import Config, checklist, load_frozen
from coral.errors import CoralError
from coral.fleet.events import TaskChanged
from coral.grading.kinds import copied_files, copy_grader_files, list_of
from coral.grading.venv import make, note, note_of, venv_of
from coral.journal import Journal, RecoveredState, fold
from coral.runs.prepare import add_agents, context_of, grade_seed, latest_baseline
from coral.runs.task_files import digest_of, names
from coral.supervisor.event_queue import is_transient
from workspace import hub
from workspace.clone_overlay import place
from workspace.errors import GitError, WorkspaceError
from workspace.layout import Layout

DONE = "done.json"  # written last
# Keys of the grader that change how much is graded and believed, and where, not what a score means.
_UNRELATED = {"slots", "confirm", "noise", "timeout", "ray", "slurm"}


def stage(layout: Layout, new: Config, say: Callable[[str], None]) -> TaskChanged:
    """Prepare the task `new`; returns the event for the supervisor. CoralError if the run cannot go on with it. The
    caller holds the run's lock."""
    old = load_frozen(layout.task_file)
    fleet, roster = fold(layout.journal).fleet, Roster(new)
    check_same_programs(old, new, fleet.agents, fleet.run.members)
    roster.check()
    check_unlimited(new, "resume")
    check_enforceable(new, roster, "resume")
    unfinished = pending(layout)
    folder = layout.staged_task / f"{len(_folders(layout)) + 1:04d}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    began = time.time()
    try:
        commit = hub.take_in_seed(layout.hub, new.seed)
    except GitError as error:
        raise CoralError(str(error), error.hint) from error
    _copy(layout, folder, new, commit, say)
    os.utime(folder / layout.seed_commit.name, (began, began))
    baseline, grader, holdout = None, folder / layout.grader.name, folder / layout.holdout.name
    is_same_seed = commit == layout.seed_commit.read_text()
    # A reload that was cut off may have installed files already, so that comparing them shows no change.
    begins = unfinished is not None and unfinished.baseline is not None
    if begins or not is_same_seed or not _is_same(grader, layout.grader) or changes_scores(old, new):
        say("grading the seed")
        baseline = grade_seed(layout, new, commit, epoch=fleet.run.epoch + 1, files=grader)
    is_same_holdout = _is_same(holdout, layout.holdout) and not changes_holdout(old, new)
    change = TaskChanged(
        baseline=baseline,
        heartbeats=new.heartbeats != old.heartbeats or bool(unfinished and unfinished.heartbeats),
        holdout=not is_same_holdout or bool(unfinished and unfinished.holdout),
    )
    done = {"baseline": baseline and to_dict(baseline), "heartbeats": change.heartbeats, "holdout": change.holdout}
    _announce(layout, folder)
    write_json(folder / DONE, done, durable=True)
    return change


def _announce(layout: Layout, staged: Path) -> None:
    """Write into the journal which digests the task's files will have."""
    with contextlib.closing(Journal(layout.journal)) as journal:
        gone = {name: "" for name in journal.recovered.files if name != layout.hub_config.name}
        journal.expect_files(gone | {name: digest_of(staged / name) for name in names(staged)})


def unknown_files(layout: Layout, memory: RecoveredState) -> list[str]:
    """Return the files of a staged task that differ from the digests that the journal has of them."""
    staged = _newest(layout)
    if staged is None:
        return []
    known = [(name, digest_of(staged / name)) for name in names(staged)]
    return [name for name, digest in known if digest not in (memory.expected.get(name), memory.files.get(name))]


def changes_scores(old: Config, new: Config) -> bool:
    """Return whether a score has another meaning in the new task, even if the grader's files are the same."""
    aims = [(config.task.description, config.task.seed) for config in (old, new)]
    graders = [(config.grader.model_dump(exclude=_UNRELATED), config.grader.ray.environment) for config in (old, new)]
    return aims[0] != aims[1] or graders[0] != graders[1]


def changes_holdout(old: Config, new: Config) -> bool:
    return old.holdout.model_dump(exclude=_UNRELATED) != new.holdout.model_dump(exclude=_UNRELATED)


def pending(layout: Layout) -> TaskChanged | None:
    """Return the staged task that no supervisor has taken over, as the event for the supervisor; None if there is
    none."""
    staged = _newest(layout)
    if staged is None:
        return None
    done = parse_object(read_bytes(staged / DONE))
    plain = done["baseline"]
    baseline = attempt_from_dict(plain) if isinstance(plain, dict) else None
    if baseline is not None and baseline.epoch <= fold(layout.journal).fleet.run.epoch:
        return None
    return TaskChanged(baseline=baseline, heartbeats=bool(done["heartbeats"]), holdout=bool(done["holdout"]))


def withdraw(layout: Layout) -> None:
    """Remove the task that was staged last; a task that was staged before it takes its place. Only the caller that has
    staged it may do so, while it holds the run's lock."""
    if (staged := _newest(layout)) is not None:
        shutil.rmtree(staged, ignore_errors=True)
    if (before := _newest(layout)) is not None:
        _announce(layout, before)


def discard(layout: Layout) -> None:
    """Remove all staged tasks, because the journal says that the newest is in force. The caller holds the run's
    lock."""
    shutil.rmtree(layout.staged_task, ignore_errors=True)


def install(layout: Layout) -> TaskChanged | None:
    """Put a staged task in the place of the run's; returns the event for the supervisor, None if there is no staged
    task. The caller holds the run's lock."""
    change, folder = pending(layout), _newest(layout)
    if change is None or folder is None:
        discard(layout)
        return None
    memory = fold(layout.journal)
    old = Roster(load_frozen(layout.task_file), memory.members)
    for target in (layout.task_file, layout.task_source, layout.seed_commit):
        place(layout.private, target.name, _text(folder / target.name))
    for target in (layout.grader, layout.holdout):
        _replace(folder / target.name, target)
        note_of(target).unlink(missing_ok=True)
        for beside in (list_of(folder / target.name), note_of(folder / target.name)):
            if beside.is_file():
                place(layout.private, beside.name, _text(beside))
    _install_checklist(layout, folder)
    commit, config = layout.seed_commit.read_text(), load_frozen(layout.task_file)
    hub.set_seed(layout.hub, commit, (folder / layout.seed_commit.name).stat().st_mtime)
    # Its number will be the next one: the supervisor handles it before it numbers anything else.
    number = memory.fleet.run.next_number
    baseline = _numbered(change.baseline, number) if change.baseline else latest_baseline(layout)
    add_agents(layout, config, baseline)
    run_context = context_of(layout, config, Roster(config, memory.members), baseline)
    for agent in old:
        if hub.is_whole(layout.clone(agent)):
            with _printed_if_blocked():
                renew_instructions(run_context, agent, commit)
    return change


@contextlib.contextmanager
def _printed_if_blocked() -> Iterator[None]:
    """Print an error of writing an agent's file to standard error, and go on. An agent can cause it, as by a folder in
    the place of the file, and would else keep every supervisor from beginning. Errors that pass by themselves, as of a
    full disk, are raised: the next resume tries again."""
    try:
        yield
    except (OSError, WorkspaceError) as error:
        if is_transient(error):
            raise
        print(f"coral: agents do not find all of the new task: {error}", file=sys.stderr)


def _numbered(baseline: Attempt, number: int) -> Attempt:
    return attempt_from_dict({**to_dict(baseline), "number": number})


def _copy(layout: Layout, folder: Path, config: Config, commit: str, say: Callable[[str], None]) -> None:
    (folder / layout.task_file.name).write_text(config.text, encoding="utf-8")
    shutil.copyfile(config.path, folder / layout.task_source.name)
    (folder / layout.seed_commit.name).write_text(commit)
    copy_grader_files(config.grader, config.folder, folder / layout.grader.name)
    if config.holdout_grader is not None:
        copy_grader_files(config.holdout_grader, config.folder, folder / layout.holdout.name)
    venv = make(config, layout.venvs, say)
    for private in (layout.grader, layout.holdout):
        note(folder / private.name, venv)
    if (text := checklist(config)) is not None:
        (folder / layout.checklist.name).write_text(text, encoding="utf-8")


def _replace(staged: Path, target: Path) -> None:
    """Replace the files of a grader. Files that are the same stay, because graders that run without a supervisor read
    them."""
    if _is_same(staged, target):
        return
    shutil.rmtree(target, ignore_errors=True)
    if staged.is_dir():
        shutil.copytree(staged, target)


def _is_same(staged: Path, target: Path) -> bool:
    """Return whether the staged files are also in the run's folder, and the grader's environment is the same. Files
    that a grader has left beside them do not count."""
    if venv_of(staged) != venv_of(target):
        return False
    if not staged.is_dir() or not target.is_dir():
        return staged.is_dir() == target.is_dir()
    names = set(copied_files(staged))
    folders = {name.parts[0] for name in names if len(name.parts) > 1}
    there = {name for name in copied_files(target) if name.parts[0] in folders}
    return there <= names and not any(filecmp.cmpfiles(staged, target, map(str, names), shallow=False)[1:])


def _install_checklist(layout: Layout, folder: Path) -> None:
    """Replace the checklist, also in the shared knowledge where agents read it, if the task has another one than
    before."""
    staged = folder / layout.checklist.name
    if not staged.is_file():
        layout.checklist.unlink(missing_ok=True)
        return
    if layout.checklist.is_file() and layout.checklist.read_bytes() == staged.read_bytes():
        return
    text = _text(staged)
    for shared in (layout.shared, *layout.shared_of("any", share=False).parent.glob("*")):
        if shared.is_dir():
            with _printed_if_blocked():
                place(shared, layout.checklist.name, text)
    place(layout.private, layout.checklist.name, text)  # last: it shows that the agents have theirs


def _text(path: Path) -> str:
    """Return the text of a file with the ends of lines that it has: its digest is known, and compared."""
    return path.read_bytes().decode("utf-8")


def _folders(layout: Layout) -> list[Path]:
    return sorted(layout.staged_task.glob("[0-9]*"))


def _newest(layout: Layout) -> Path | None:
    return next((folder for folder in reversed(_folders(layout)) if (folder / DONE).is_file()), None)
