"""What stays of a grade: the files that agents may read."""

import os
import subprocess
from pathlib import Path

import pytest
from files import write_files
from grade_places import place_in
from levels import open_to_others

from coral.cluster.archive import entries
from coral.cluster.shipping import Shipping
from coral.config.cluster import RaySection
from coral.config.model import GraderSection
from coral.grading import checkout
from coral.grading.checkout import ARTIFACT_BYTES, KEPT_BYTES, MOST_ARTIFACTS, end_grade, keep_artifacts
from coral.grading.kinds import kind_of
from workspace import hub
from workspace.layout import Layout

OUTPUT = ["beats.jsonl", "cluster.log", "result.json", "spec.json", "stderr", "stdout"]
NOBODY = 65534


def kept(folder: Path) -> dict[str, str]:
    keep_artifacts(folder, folder / "kept")
    return {path.name: path.read_text() for path in (folder / "kept").glob("*")}


def test_plain_files_are_kept_and_whatever_else_a_candidate_laid_there_is_not(tmp_path: Path) -> None:
    write_files(tmp_path, {"secret": "s", "artifacts/plot.svg": "<svg/>", "artifacts/.hidden": "", "artifacts/a/b": ""})
    (tmp_path / "artifacts" / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "artifacts" / "pipe")
    assert kept(tmp_path) == {"plot.svg": "<svg/>"}


@pytest.mark.parametrize("target", ["../holdout", "/proc/self"])
def test_nothing_is_kept_of_a_folder_to_which_a_candidate_laid_a_link(tmp_path: Path, target: str) -> None:
    write_files(tmp_path, {"holdout/hidden": "s", "grade/stdout": ""})
    (tmp_path / "grade" / "artifacts").symlink_to(target)
    assert kept(tmp_path / "grade") == {}


def test_of_a_folder_with_very_many_files_only_the_first_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkout, "MOST_NAMES", 3)
    write_files(tmp_path, {f"artifacts/{number}": "x" for number in range(9)})
    assert len(kept(tmp_path)) == 3


def test_too_many_or_too_large_files_are_not_kept(tmp_path: Path) -> None:
    write_files(tmp_path, {f"artifacts/{number:04d}": "x" for number in range(MOST_ARTIFACTS + 5)})
    with (tmp_path / "artifacts" / "0000").open("wb") as file:
        file.truncate(ARTIFACT_BYTES + 1)
    assert sorted(kept(tmp_path)) == [f"{number:04d}" for number in range(1, MOST_ARTIFACTS + 1)]


def test_a_grade_without_artifacts_leaves_no_folder(tmp_path: Path) -> None:
    (tmp_path / "artifacts").mkdir()
    assert kept(tmp_path) == {}
    keep_artifacts(tmp_path / "absent", tmp_path / "kept")
    assert not (tmp_path / "kept").exists()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Of a run in which attempt 3 was graded, whose grade has written what a grade writes."""
    written = {"stdout": "out", "stderr": "err", "result.json": "1", "spec.json": "{}", "beats.jsonl": "{}"}
    layout = Layout(tmp_path / "run")
    layout.grade(3).parent.mkdir(parents=True)
    write_files(layout.grading(3), {**written, "cluster.log": "on a node", "tmp/t": "", "candidate-1/x.txt": ""})
    return layout


def left_of(layout: Layout) -> list[str]:
    end_grade(layout, 3)
    return sorted(path.name for path in layout.grading(3).iterdir())


def test_of_a_grade_that_is_over_only_its_output_stays(layout: Layout, tmp_path: Path) -> None:
    write_files(layout.grading(3), {"artifacts/plot.svg": "<svg/>", "made/by/candidate": "", ".hidden": "", "core": ""})
    write_files(tmp_path, {"elsewhere/file": "x"})
    (layout.grading(3) / "link").symlink_to(tmp_path / "elsewhere")
    assert left_of(layout) == OUTPUT
    assert (layout.grading(3) / "stdout").read_text() == "out"
    assert (layout.grade(3) / "plot.svg").read_text() == "<svg/>"
    assert (tmp_path / "elsewhere" / "file").exists()


def test_what_a_candidate_put_in_the_place_of_output_is_removed(layout: Layout, tmp_path: Path) -> None:
    write_files(tmp_path, {"elsewhere": "x" * (4 * KEPT_BYTES)})
    for name in ("stdout", "stderr", "cluster.log", "beats.jsonl"):
        (layout.grading(3) / name).unlink()
    write_files(layout.grading(3), {"stdout/file": ""})
    (layout.grading(3) / "stderr").symlink_to(tmp_path / "elsewhere")
    (layout.grading(3) / "cluster.log").hardlink_to(tmp_path / "elsewhere")
    os.mkfifo(layout.grading(3) / "beats.jsonl")
    assert left_of(layout) == ["result.json", "spec.json"]
    assert (tmp_path / "elsewhere").stat().st_size == 4 * KEPT_BYTES


@pytest.mark.parametrize("name", OUTPUT)
def test_of_long_output_the_beginning_and_the_end_stay(layout: Layout, name: str) -> None:
    (layout.grading(3) / name).write_bytes(b"first" + b"x" * (3 * KEPT_BYTES) + b"last")
    (layout.grading(3) / "other name").hardlink_to(layout.grading(3) / name)
    assert left_of(layout) == OUTPUT
    data = (layout.grading(3) / name).read_bytes()
    assert data.startswith(b"firstx")
    assert data.endswith(b"xlast")
    assert b"x\n[cut: 1048585 bytes]\nx" in data
    assert len(data) == 2 * KEPT_BYTES + len("\n[cut: 1048585 bytes]\n")
    end_grade(layout, 3)  # again, as a resume may do
    assert (layout.grading(3) / name).read_bytes() == data


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="blocks beyond the end of a file are Linux's")
def test_blocks_beyond_the_end_of_output_are_freed(layout: Layout) -> None:
    path = layout.grading(3) / "stdout"
    fallocate = ["fallocate", "--keep-size", "--length", str(8 * KEPT_BYTES), str(path)]
    if subprocess.run(fallocate, capture_output=True, check=False).returncode:
        pytest.skip("the file system has none")
    assert left_of(layout) == OUTPUT
    assert path.read_text() == "out"
    assert path.stat().st_blocks * 512 < KEPT_BYTES


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_a_folder_that_its_grade_has_closed_is_emptied(layout: Layout, tmp_path: Path) -> None:
    """By a supervisor that is not root's, as whose user the grade ran."""
    open_to_others(tmp_path)
    for path in (layout.root, *layout.root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    layout.grading(3).chmod(0)
    if (child := os.fork()) == 0:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            end_grade(layout, 3)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert sorted(path.name for path in layout.grading(3).iterdir()) == OUTPUT


@pytest.mark.parametrize("attributes", ["", "*.txt text eol=crlf\n"])
def test_for_a_node_the_files_are_packed_where_that_is_possible(tmp_path: Path, attributes: str) -> None:
    """Else they are checked out; what is sent has the same files either way."""
    seed = {"a.txt": "1\n", "b/c.sh": "#!/bin/sh\n"} | ({".gitattributes": attributes} if attributes else {})
    commit = hub.create(tmp_path / "hub.git", write_files(tmp_path / "seed", seed))
    grader = GraderSection(entry="grade.py:grade", executor="ray", ray=RaySection(address="127.0.0.1:6379"))
    command = kind_of(grader).command(grader, place_in(tmp_path))
    checkout.make_workspace(command, tmp_path / "hub.git", commit)
    assert command.workspace.is_dir() == bool(attributes)
    hub.checkout(tmp_path / "hub.git", commit, tmp_path / "out")
    sent, wanted = (
        {entry.name: (entry.mode, bytes(entry.content)) for entry in entries(Shipping().candidate(order))}
        for order in ({"places": {"candidate": str(folder)}} for folder in (command.workspace, tmp_path / "out"))
    )
    assert sent == wanted
