"""Makes the checkout of a commit ready for its grader, and removes it when the grade is over.

Both may take long, so worker threads do it.
"""

import contextlib
import os
import stat
from collections.abc import Collection
from itertools import islice
from pathlib import Path

from attempts.files import write_bytes
from attempts.record import Kind
from coral.cluster.archive import CANDIDATE, Entry, pack
from coral.cluster.spread_folders import spread_folders
from coral.cluster.wire import GRADE_LOG
from coral.config.load import Config
from coral.fleet.actions import CheckOut, StartGrader
from coral.fleet.process_key import holdout_key
from coral.grader.remove_tree import remove_tree, take_rights
from coral.grading.command import (
    ARTIFACTS,
    BEATS,
    RESULT,
    SCRATCH,
    SPEC,
    STDERR,
    STDOUT,
    GradeCommand,
    GradePlace,
    prepare_folder,
)
from coral.grading.kinds import kind_of
from coral.grading.sandbox import sandbox_of
from coral.processes.seal import Sandbox
from workspace.export import export
from workspace.hub import checkout
from workspace.layout import Layout, folder_of_runs
from workspace.owner import CANDIDATES
from workspace.plain_file import folder_of, read_plain

FOLDER_MODE = 0o755  # of the candidate's folder on a node, as others there have it
ARTIFACT_BYTES, MOST_ARTIFACTS = 10 << 20, 100  # of one grade
MOST_NAMES = 1000  # that are read of its folder: a candidate may have made millions
OUTPUT = (STDOUT, STDERR, GRADE_LOG, RESULT, SPEC, BEATS)  # what stays of the folder of a grade
KEPT_BYTES, BLOCK = 1 << 20, 4096  # of the beginning and of the end of each; the rest of a block on the disk


def prepare_grade(
    layout: Layout, config: Config, grade: CheckOut, venv: Path | None, private: Path | None = None
) -> GradeCommand:
    """Check the commit out, prepare the grade's folder, and say how to start the grader. `venv`: the grader's
    environment, if it has one; `private`: its own files, if they are not those of the run. Raises what `checkout`
    raises. Blocks.

    Each launch has a checkout of its own: a git that outlives a killed supervisor may still write into an older one.
    """
    folder = layout.grading(grade.number)
    _empty(folder)
    spread_folders(folder.parent)
    command = grade_command(layout, config, grade, venv, private)
    make_workspace(command, layout.hub, grade.commit)
    prepare_folder(command)
    return command


def make_workspace(command: GradeCommand, hub: Path, commit: str) -> None:
    """Check the commit out where the grader looks for it. For a grader on a cluster, put an archive there if the files
    can be read without a checkout: the node has to write them, and to write them here as well would take as long
    again. Raises what `checkout` raises. Blocks."""
    files = None if command.bridge is None else export(hub, commit)
    if files is None:
        checkout(hub, commit, command.workspace)
        return
    top = Entry(CANDIDATE, stat.S_IFDIR | FOLDER_MODE, memoryview(b""))
    below = (Entry(f"{CANDIDATE}/{file.name}", file.mode, memoryview(file.content)) for file in files)
    write_bytes(command.workspace, pack((top, *below)), durable=False)


def grade_command(
    layout: Layout, config: Config, grade: CheckOut | StartGrader, venv: Path | None, private: Path | None = None
) -> GradeCommand:
    """Say how the grader, or the hold-out's, is started on the commit that `prepare_grade` checks out."""
    grader, files, number = config.grader, private or layout.grader, grade.number
    if grade.kind is Kind.HOLDOUT and config.holdout_grader is not None:
        grader, files, number = config.holdout_grader, layout.holdout, holdout_key(number)
    kind = kind_of(grader)
    folder = layout.grading(grade.number)
    workspace = _candidate(folder, grade.launch)
    sandbox = sandbox_of(
        config, grader, private=files, folder=folder, runs=folder_of_runs(layout), root=layout.root, venv=venv
    )
    place = GradePlace(
        workspace=workspace,
        private=files,
        folder=folder,
        attempt=number,
        kind=grade.kind,
        timeout=grader.timeout,
        sandbox=sandbox,
        venv=venv,
        task=(config.task.name, config.task.description),
    )
    return kind.command(grader, place)


def sandbox_of_attempt(layout: Layout, config: Config, number: int, venv: Path | None) -> Sandbox:
    """Return the sandbox of an attempt's grade, for an interpreter that is started before the commit is taken in."""
    folder = layout.grading(number)
    runs = folder_of_runs(layout)
    return sandbox_of(
        config, config.grader, private=layout.grader, folder=folder, runs=runs, root=layout.root, venv=venv
    )


def _empty(folder: Path) -> None:
    """Empty the folder, or make it. It is not removed and made again: a sandbox that was prepared before shows this
    folder, and would not show another in its place."""
    if folder.is_symlink() or not folder.is_dir():
        remove_tree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        remove_tree(path)


def _candidate(folder: Path, launch: int) -> Path:
    return folder / f"{CANDIDATE}-{launch}"


def end_grade(layout: Layout, number: int) -> None:
    """Copy the artifacts of a published attempt to where agents can read them, then remove all but its output.
    Blocks."""
    keep_artifacts(layout.grading(number), layout.grade(number))
    remove_checkouts(layout, number)


def end_published(layout: Layout, next_number: int, pending: Collection[int]) -> None:
    """End the grades whose records are published and whose checkouts still exist: their supervisor was killed in
    between. `next_number`: that of the next attempt; `pending`: the attempts that are not published. Blocks."""
    for folder in (layout.private / "grading").glob(f"*/{CANDIDATE}-*"):
        name = folder.parent.name
        if name.isdecimal() and int(name) < next_number and int(name) not in pending:
            end_grade(layout, int(name))


def remove_checkouts(layout: Layout, number: int) -> None:
    """Remove all but its output from the folder of a grade that is over, whatever code of the candidate left there; of
    the output, the first and the last bytes stay. Blocks."""
    folder = layout.grading(number)
    with contextlib.suppress(OSError):
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):  # the grade has closed it
            take_rights(folder)
        with folder_of(folder, "any") as place:
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name not in OUTPUT:
                        remove_tree(folder / entry.name)
            for name in OUTPUT:
                with contextlib.suppress(FileNotFoundError):
                    found = os.stat(name, dir_fd=place, follow_symlinks=False)
                    # Blocks may be taken beyond the end of a file.
                    is_long = max(found.st_size, found.st_blocks * 512) > 2 * KEPT_BYTES + BLOCK
                    if not stat.S_ISREG(found.st_mode) or (is_long and not _cut(name, place)):
                        remove_tree(folder / name)


def _cut(name: str, place: int) -> bool:
    """Cut a file, in the folder with this descriptor, to its first and its last KEPT_BYTES; returns whether that was
    possible. It is written to in its place, for which there is room on a full disk; but not if it has another name: a
    candidate may have given one to somebody else's file."""
    try:
        file = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
    except OSError:
        return False
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return False
        size = found.st_size
        if size > 2 * KEPT_BYTES + BLOCK:
            end = b"\n[cut: %d bytes]\n" % (size - 2 * KEPT_BYTES) + os.pread(file, KEPT_BYTES, size - KEPT_BYTES)
            size = KEPT_BYTES + os.pwrite(file, end, KEPT_BYTES)
        os.ftruncate(file, size)  # also to its own size: that frees what was taken beyond its end
    except OSError:
        return False
    finally:
        os.close(file)
    return True


def keep_artifacts(grade: Path, target: Path) -> None:
    """Copy the plain files that lie directly in the folder ARTIFACTS of a grade's folder, up to MOST_ARTIFACTS files
    and ARTIFACT_BYTES in all, of the first MOST_NAMES that the folder lists. A candidate may have made them, and may
    have put a link to a folder that is closed to agents in the place of theirs."""
    left, kept = ARTIFACT_BYTES, 0
    # OSError: there is no such folder, or a link, or no room: the record then has no artifacts.
    with contextlib.suppress(OSError), folder_of(grade, f"{ARTIFACTS}/any") as place:
        with os.scandir(place) as entries:
            names = sorted(entry.name for entry in islice(entries, MOST_NAMES))
        for name in names:
            if kept == MOST_ARTIFACTS:
                return
            data = None if name.startswith(".") else read_plain(name, left + 1, place=place)
            if data is not None and len(data) <= left:
                target.mkdir(exist_ok=True)
                write_bytes(target / name, data, durable=False)
                left, kept = left - len(data), kept + 1


def clean_up(layout: Layout, number: int, launch: int, whole: bool) -> None:
    """Remove the checkout and the temporary files of a launch that is over, or its `whole` folder. Blocks.

    Nothing is renamed: where a quota is used up, a file can be deleted and not renamed.
    """
    folder = layout.grading(number)
    for path in (folder,) if whole else (_candidate(folder, launch), folder / SCRATCH, folder / CANDIDATES):
        remove_tree(path)
