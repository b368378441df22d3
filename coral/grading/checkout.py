"""From a commit to a grading process, and from its end to what it came to.

Checking out a commit may take long, so it is done by a few threads; the process itself is started by the loop.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from attempts.files import parse_object
from coral.config.model import GraderSection
from coral.fleet import events as on
from coral.fleet.actions import Grade, StartGrader
from coral.grading.command import BEATS, RESULT, SCRATCH, GradeCommand, GradePlace, prepare_folder
from coral.grading.kinds import kind_of
from coral.grading.result import read_result
from coral.processes import environment
from coral.processes.process import Program
from heartbeats.beat import Beat
from heartbeats.beat import from_dict as beat_from_dict
from workspace.hub import checkout
from workspace.intake import Taken
from workspace.layout import Layout

STDOUT, STDERR, CANDIDATE = "stdout", "stderr", "candidate"
LONGEST_BEAT = 4096  # bytes


def taken_in_event(number: int, taken: Taken, duplicate: tuple[int, float] | None) -> on.TakenIn:
    """`duplicate`: the first attempt with the same tree that has a score, and that."""
    of, score = duplicate if duplicate is not None else (None, None)
    return on.TakenIn(
        number=number, commit=taken.commit, tree=taken.tree, parent=taken.parent, duplicate_of=of, duplicate_score=score
    )


def prepare_grade(layout: Layout, grader: GraderSection, grade: Grade) -> GradeCommand:
    """Check the commit out, prepare the grade's folder, and say how to start the grader. Blocks; raises what
    `checkout` raises.

    Each launch has a place of its own: a git that outlives a killed supervisor may still write into an older one.
    """
    folder = layout.grading(grade.number)
    for path in (folder, *_aside(layout, grade.number)):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    checkout(layout.hub, grade.commit, _candidate(folder, grade.launch))
    command = _command(layout, grader, grade)
    prepare_folder(command)
    return command


def grader_program(layout: Layout, grader: GraderSection, start: StartGrader, tag: str) -> Program:
    """The grader's program, for a commit that was made ready."""
    command = _command(layout, grader, start)
    return Program(
        argv=command.argv,
        env={**environment.base(), **command.env},
        cwd=command.cwd,
        stdin=Path(os.devnull),
        stdout=command.folder / STDOUT,
        stderr=command.folder / STDERR,
        tag=tag,
    )


def _command(layout: Layout, grader: GraderSection, grade: Grade | StartGrader) -> GradeCommand:
    folder = layout.grading(grade.number)
    workspace = _candidate(folder, grade.launch)
    place = GradePlace(workspace=workspace, private=layout.grader, folder=folder, attempt=grade.number, kind=grade.kind)
    return kind_of(grader).command(grader, place)


def _candidate(folder: Path, launch: int) -> Path:
    return folder / f"{CANDIDATE}-{launch}"


def remove_checkouts(layout: Layout, number: int) -> None:
    """Remove the checkout and the scratch of an attempt that is published; what its grader printed stays. Blocks."""
    folder = layout.grading(number)
    for path in (*folder.glob(f"{CANDIDATE}-*"), folder / SCRATCH, *_aside(layout, number)):
        shutil.rmtree(path, ignore_errors=True)


def move_aside(layout: Layout, number: int, launch: int, whole: bool) -> list[Path]:
    """Where the checkout and the scratch of a launch that is over, or the whole of it, are now out of the way of the
    next launch, which need not wait until they are removed."""
    folder = layout.grading(number)
    asides = []
    for path in (folder,) if whole else (_candidate(folder, launch), folder / SCRATCH):
        asides.append(folder.with_name(f".{number}.{launch}.{path.name}"))
        with contextlib.suppress(OSError):  # then it stays until the attempt is graded again or published
            path.rename(asides[-1])
    return asides


def remove_moved(asides: list[Path]) -> None:
    """Remove what was set aside. Blocks."""
    for path in asides:
        shutil.rmtree(path, ignore_errors=True)


def _aside(layout: Layout, number: int) -> Iterator[Path]:
    """What a supervisor that died had no time to remove."""
    return layout.grading(number).parent.glob(f".{number}.*")


def graded_event(layout: Layout, number: int, launch: int, code: int | None, seconds: float) -> on.Graded:
    """What an ended grading process came to. Its checkout stays: removing it takes too long for the loop.

    `code` is None where nobody saw the end: then a result that is there speaks for it, and none means once more.
    """
    folder = layout.grading(number)
    if code is None and not (folder / RESULT).exists():
        return on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
    result = read_result(folder / RESULT, code or 0, folder / STDOUT, folder / STDERR, timed_out=False)
    if code is None and result.outcome is on.Outcome.CRASHED:
        return on.Graded(number=number, launch=launch, outcome=on.Outcome.LOST)
    return on.Graded(
        number=number,
        launch=launch,
        outcome=result.outcome,
        score=result.score,
        reason=result.reason,
        feedback=result.feedback,
        metrics=result.metrics,
        seconds=round(seconds, 3),
    )


def progress_of(layout: Layout, number: int) -> Beat | None:
    """The last beat of a grade that runs, as its grader reported it; None while it has said nothing readable."""
    try:
        # A candidate may reach the file too: a pipe there must not hold the loop, nor a link lead elsewhere.
        handle = os.open(layout.grading(number) / BEATS, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                return None
            file.seek(max(found.st_size - LONGEST_BEAT, 0))
            lines = file.read(LONGEST_BEAT).splitlines()
        return beat_from_dict(parse_object(lines[-1])) if lines else None
    except (OSError, ValueError):
        return None
