"""Grades a record again, strictly: from a checkout whose objects are hashed, by the grader that the run began with."""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from attempts.files import read_bytes, write_json
from attempts.noise import Noise, median, tiny
from attempts.record import Attempt
from coral.config.load import Config, load_frozen
from coral.errors import CoralError
from coral.fleet.events import Outcome
from coral.grader.remove_tree import remove_tree
from coral.grading.command import GradePlace, prepare_folder
from coral.grading.kinds import kind_of
from coral.grading.once import run_grader
from coral.grading.sandbox import sandbox_of
from coral.grading.venv import venv_of
from coral.journal import fold
from coral.runs.task_files import changed
from coral.views import format
from workspace import hub
from workspace.disk import is_unwritable
from workspace.errors import GitError
from workspace.layout import Layout, folder_of_runs


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of grading one attempt again. `recorded`: the median of the scores in its records. `score`: the new
    score; None if there is none, and `reason` says why. `noise`: the standard deviation of its grades; None if that is
    not known, and the score must be the same then."""

    number: int
    recorded: float
    score: float | None
    reason: str
    channel: str
    is_same: bool
    noise: float | None

    @property
    def text(self) -> str:
        """One sentence for people."""
        score, recorded = format.score(self.score), format.score(self.recorded)
        if self.is_same:
            close = "again" if score == recorded else f"now, within the noise of {recorded}"
            return f"#{self.number} is verified: it scores {score} {close} (channel {self.channel})"
        unknown = "; how far grades of one commit differ here is not known" if self.noise is None else ""
        now = f"it scores {score}{unknown}" if self.score is not None else self.reason
        return f"#{self.number} is not verified: the median of its grades is {recorded}, and now {now}"


def verify(layout: Layout, attempt: Attempt, recorded: Sequence[float], noise: Noise) -> Verification:
    """Grade the attempt again, and keep the result. `recorded`: the scores of its grades; `noise`: of scores near
    theirs. CoralError if it cannot be graded under the same conditions. Blocks."""
    name = f"cannot verify #{attempt.number}"
    memory = fold(layout.journal)
    if files := changed(layout.private, memory.files, memory.expected):
        raise CoralError(f"{name}: private/{files[0]} was changed", "restore it: another grader proves nothing")
    config, folder = load_frozen(layout.task_file), _new_folder(layout, name)
    try:
        for cache in layout.grader.rglob("__pycache__"):
            remove_tree(cache)  # compiled code, which nobody has compared
        hub.restore_settings(layout.hub, hub.settings(layout.hub, layout.hub_config))
        hub.checkout(layout.hub, attempt.commit, folder / "candidate")
        if hub.tree_of(layout.hub, attempt.commit) != attempt.tree:
            raise CoralError(f"{name}: its commit has other files than its record says", "see `coral log --json`")
        command = kind_of(config.grader).command(config.grader, _place(layout, config, attempt, folder))
        prepare_folder(command)
        result = run_grader(command, config.grader.timeout)
    except GitError as error:
        raise CoralError(f"{name}: {error}", error.hint) from error
    finally:
        remove_tree(folder)
    if result.outcome in (Outcome.VOID, Outcome.LOST):
        raise CoralError(f"{name}: it could not be graded: {result.reason}", "verify it again when that is over")
    is_same = result.score is not None and scores_the_same(result.score, recorded, noise)
    made = Verification(
        attempt.number,
        median(recorded),
        result.score,
        result.reason,
        result.channel,
        is_same,
        noise.deviation if noise.freedom else None,
    )
    write_json(layout.verified, {**verified(layout), str(attempt.number): asdict(made)}, durable=True, mode=0o600)
    return made


def _new_folder(layout: Layout, name: str) -> Path:
    """Make the folder for one more grade. CoralError that begins with `name` if the run's folder is not writable."""
    folder = layout.private / "verify" / str(time.time_ns())
    try:
        folder.mkdir(mode=0o700, parents=True)
    except OSError as error:
        if not is_unwritable(error):
            raise
        hint = "make the run's folder writable, or verify a copy of the run: the grade and its result are kept there"
        raise CoralError(f"{name}: {folder.parent} cannot be written: {error.strerror}", hint) from None
    return folder


def _place(layout: Layout, config: Config, attempt: Attempt, folder: Path) -> GradePlace:
    venv = venv_of(layout.grader)
    return GradePlace(
        workspace=folder / "candidate",
        private=layout.grader,
        folder=folder,
        attempt=attempt.number,
        kind=attempt.kind,
        timeout=config.grader.timeout,
        sandbox=sandbox_of(
            config,
            config.grader,
            private=layout.grader,
            folder=folder,
            runs=folder_of_runs(layout),
            root=layout.root,
            venv=venv,
        ),
        venv=venv,
        task=(config.task.name, config.task.description),
    )


def scores_the_same(score: float, recorded: Sequence[float], noise: Noise) -> bool:
    """Return whether a score differs from the median of those recorded by no more than rounding and the noise explain.
    The median has an error of its own, and few grades tell little of the noise."""
    middle = median(recorded)
    explained = noise.bar(middle, math.sqrt(1 + 1 / len(recorded))) if noise.freedom else 0.0
    return abs(score - middle) <= max(explained, tiny(score), tiny(middle))


def verified(layout: Layout) -> dict[str, dict[str, object]]:
    """Return the verifications so far, by the numbers of the attempts as text."""
    try:
        found = json.loads(read_bytes(Path(layout.verified), 10_000_000))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
