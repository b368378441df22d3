"""The files of a run's task: whatever is done to them is undone before the next grade, and found at a resume."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from files import write_files

from coral.runs import task_files
from coral.runs.task_files import TaskFiles, changed, digest_of
from workspace.layout import Layout

FILES = {
    "task.yaml": "task: {}\n",
    "task.source.yaml": "task: {}\n",
    "seed": "0123",
    "hub.config": "[core]\n",
    "grader/grade.py": "import data\n",
    "grader/data/hidden.csv": "1,2\n",
    "grader/data/deep/more.csv": "3\n",
    "holdout/grade.py": "import other\n",
    "grader.files.json": '{"files": ["data/deep/more.csv", "data/hidden.csv", "grade.py"], "data": ["data"]}',
    "holdout.files.json": '{"files": ["grade.py"], "data": []}',
}


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    write_files(tmp_path / "run" / "private", FILES)
    (tmp_path / "run" / "private" / "grader" / "grade.py").chmod(0o755)
    return Layout(tmp_path / "run")


@pytest.fixture
def task(tmp_path: Path) -> Path:
    below = {name.partition("/")[2]: text for name, text in FILES.items() if name.startswith("grader/")}
    return write_files(tmp_path / "task", below)


def is_whole(layout: Layout) -> bool:
    found = {name: (layout.private / name) for name in FILES}
    files = [name for name, path in found.items() if path.is_file() and not path.is_symlink()]
    is_same = all(name in files and found[name].read_text() == text for name, text in FILES.items())
    links = [path for path in layout.private.rglob("*") if path.is_symlink() and path.parent.name != "foreign"]
    return is_same and not links and bool((layout.grader / "grade.py").stat().st_mode & 0o111)


def replace_folder(private: Path) -> None:
    (private / "grader" / "data").rename(private / "grader" / "away")
    (private / "grader" / "data").symlink_to("away")
    (private / "grader" / "away" / "hidden.csv").write_text("9,9\n")


def same_size_and_time(private: Path) -> None:
    path = private / "grader" / "data" / "hidden.csv"
    before = path.stat()
    path.write_text("7,8\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def by_rename(private: Path) -> None:
    (private / "new").write_text("task: {direction: minimize}\n")
    (private / "new").rename(private / "task.yaml")


def by_folder(private: Path) -> None:
    (private / "grader" / "grade.py").unlink()
    (private / "grader" / "grade.py").mkdir()


ATTACKS: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "contents": (lambda private: (private / "grader" / "grade.py").write_text("x"), {"grader/grade.py"}),
    "same size and time": (same_size_and_time, {"grader/data/hidden.csv"}),
    "deleted": (lambda private: (private / "seed").unlink(), {"seed"}),
    "all deleted": (
        lambda private: shutil.rmtree(private / "grader"),
        {name for name in FILES if name.startswith("grader/")},
    ),
    "by rename": (by_rename, {"task.yaml"}),
    "a folder": (by_folder, {"grader/grade.py"}),
    "a link": (replace_folder, {"grader/data", "grader/data/hidden.csv"}),
    "a module": (lambda private: (private / "grader" / "json.py").write_text("x"), {"grader/json.py"}),
    "a package": (
        lambda private: write_files(private / "holdout", {"json/__init__.py": "x", "json/x.txt": "y"}),
        {"holdout/json/__init__.py", "holdout/json/x.txt"},
    ),
    "an environment": (lambda private: (private / "grader.venv").write_text("/mine\n"), {"grader.venv"}),
    "a pipe": (lambda private: os.mkfifo(private / "holdout.venv"), {"holdout.venv"}),
    "among data": (lambda private: (private / "grader" / "data" / "x").write_text("x"), {"grader/data/x"}),
}


@pytest.mark.parametrize("held", [task_files.HELD, 0])
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_changed_is_found_and_put_right(
    layout: Layout, task: Path, monkeypatch, attack: str, held: int
) -> None:
    monkeypatch.setattr(task_files, "HELD", held)
    if held == 0:  # what no task's folder has is small
        for name in ("task.yaml", "seed", "grader.files.json"):
            (task / name).write_text(FILES[name])
        monkeypatch.setattr(TaskFiles, "_source_of", lambda self, name: task / name.removeprefix("grader/"))
    files = TaskFiles(layout, task)
    digests = files.digests
    assert files.restore() == [] == changed(layout.private, digests, {})
    do, names = ATTACKS[attack]
    do(layout.private)
    assert set(changed(layout.private, digests, {})) == names
    also = {"grader/data/deep/more.csv"} if attack == "a link" else set()
    assert {name for name, _ in files.restore()} == names | also
    assert is_whole(layout)
    assert files.restore() == [] == changed(layout.private, digests, {})


@pytest.mark.parametrize("text", ['{"data": []}', "[" * 100_000, None])
def test_what_is_among_the_data_is_what_the_list_said_first(layout: Layout, task: Path, text: str | None) -> None:
    """None: a pipe, for which nobody waits."""
    files, place = TaskFiles(layout, task), layout.private / "grader.files.json"
    digests = files.digests
    place.unlink()
    os.mkfifo(place) if text is None else place.write_text(text)
    (layout.grader / "data" / "x").write_text("x")
    assert changed(layout.private, digests, {}) == ["grader.files.json"]
    assert {name for name, _ in files.restore()} == {"grader.files.json", "grader/data/x"}
    assert is_whole(layout)


def test_what_a_grader_left_stays_and_nothing_that_python_wrote_is_trusted(layout: Layout, task: Path) -> None:
    files = TaskFiles(layout, task)
    pyc = "__pycache__/grade.cpython-311.pyc"
    left = write_files(layout.grader, {"cache.bin": "x", "downloads/a.npz": "y", pyc: "z"})
    assert files.restore() == []
    assert ((left / "cache.bin").exists(), (left / "downloads" / "a.npz").exists()) == (True, True)
    assert not (left / pyc).exists()


def test_what_a_grader_leaves_may_change_between_two_supervisors(layout: Layout, task: Path) -> None:
    write_files(layout.grader, {"cache.bin": "x"})
    digests = TaskFiles(layout, task).digests
    (layout.grader / "cache.bin").write_text("y")
    assert changed(layout.private, digests, {}) == [] == TaskFiles(layout, task).restore()
    assert (layout.grader / "cache.bin").read_text() == "y"


def test_what_we_change_ourselves_is_expected(layout: Layout, task: Path) -> None:
    digests = TaskFiles(layout, task).digests
    assert changed(layout.private, digests, {"task.yaml": "0" * 64, "seed": ""}) == []
    (layout.private / "task.yaml").write_text("other: {}\n")
    (layout.private / "seed").unlink()
    assert changed(layout.private, digests, {"seed": ""}) == ["task.yaml"]
    assert changed(layout.private, digests, {"seed": "", "task.yaml": digest_of(layout.task_file)}) == []


def test_what_is_no_file_does_not_keep_a_run_from_being_supervised(layout: Layout, task: Path) -> None:
    (layout.grader / "grade.py").unlink()
    os.mkfifo(layout.grader / "grade.py")
    (layout.grader / "latest").symlink_to("nowhere")
    os.mkfifo(layout.grader / "pipe")
    files = TaskFiles(layout, task)
    assert "grader/grade.py" not in files.digests
    assert {name for name, _ in files.restore()} == {"grader/grade.py", "grader/latest"}
    assert (layout.grader / "pipe").exists()


def test_only_times_have_changed(layout: Layout, task: Path) -> None:
    files = TaskFiles(layout, task)
    (layout.grader / "grade.py").touch()
    (layout.grader / "grade.py").chmod(0o600)
    assert files.restore() == [("grader/grade.py", "was written to, and is as it was")]
    assert (is_whole(layout), files.restore()) == (True, [])


def test_nothing_is_graded_by_a_file_that_cannot_be_restored(layout: Layout, task: Path, monkeypatch) -> None:
    monkeypatch.setattr(task_files, "HELD", 0)
    files = TaskFiles(layout, task)
    (layout.grader / "data" / "hidden.csv").write_text("9")
    (task / "data" / "hidden.csv").write_text("changed as well")
    for _ in range(2):
        with pytest.raises(OSError, match=r"hidden\.csv was changed, and no other copy of it is known"):
            files.restore()


def test_without_digests_nothing_is_known(layout: Layout) -> None:
    assert changed(layout.private, {}, {}) == []
