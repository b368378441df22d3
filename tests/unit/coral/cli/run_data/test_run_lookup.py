"""A hint names a command that the reader can type where it is read."""

import os
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from coral.cli.run_data.lenient_json import LenientJson, read
from coral.cli.run_data.run_lookup import program, task_folder


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment of its own, with the script in it and on no search path."""
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    (folder / "coral").write_text("#!/bin/sh\n")
    (folder / "coral").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    monkeypatch.setenv("PATH", os.defpath)
    monkeypatch.chdir(tmp_path)
    return folder


def test_what_is_on_the_search_path_needs_no_path(
    scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(scripts))
    assert program() == "coral"
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "coral").symlink_to(scripts / "coral")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert program() == "coral"
    other = tmp_path / "other"
    other.mkdir()
    (other / "coral").write_text("#!/bin/sh\n")
    (other / "coral").chmod(0o755)
    monkeypatch.setenv("PATH", str(other))
    assert program() == ".venv/bin/coral"


def test_otherwise_it_is_the_script_seen_from_here(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert program() == ".venv/bin/coral"
    monkeypatch.chdir(scripts)
    assert program() == "./coral"
    (scripts / "coral").unlink()
    assert program() == "coral"


def test_the_task_around_here_is_the_closest_above(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "task" / "seed" / "deep"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert task_folder() is None
    (tmp_path / "task" / "task.yaml").write_text("task:\n")
    assert task_folder() == tmp_path / "task"


def test_a_path_with_a_blank_can_be_typed(scripts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts.parent.rename(tmp_path / "my env")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "my env" / "bin" / "python"))
    assert shlex.split(program()) == ["my env/bin/coral"]


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
ANY = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=8)


@given(st.dictionaries(st.text(max_size=5), ANY))
@example({"score": 10**400})
def test_every_value_is_read_with_a_type(data: dict[str, object]) -> None:
    found = LenientJson(data)
    for name in found.data:
        assert type(found.text(name)) is str
        assert type(found.number(name)) in (float, type(None))
        assert type(found.integer(name)) in (int, type(None))
        assert all(type(item) is LenientJson for item in (found.inner(name), *found.objects(name)))
        assert all(type(item) is str for item in found.texts(name))
        assert all(type(item) is int for item in found.integers(name))


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"{", b"[1]", b"7", b"[" * 100_000])
def test_a_damaged_file_is_read_as_an_empty_object(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "status.json").write_bytes(content)
    assert not read(tmp_path / "status.json")
    assert not read(tmp_path / "gone.json")
