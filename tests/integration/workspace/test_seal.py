"""Programs in a real sandbox: what they see, and how they end."""

import subprocess
from pathlib import Path

import pytest

from workspace import seal
from workspace.layout import Layout
from workspace.plain_file import read_below
from workspace.seal import Access

sealable = pytest.mark.skipif(
    bool(seal.bubblewrap_problem()), reason=f"NOT RUN: bubblewrap: {seal.bubblewrap_problem()}"
)


def run(script: str, view: dict[Path, Access], folder: Path) -> "subprocess.CompletedProcess[str]":
    line = seal.bubblewrap(["/bin/sh", "-c", script], view, folder)
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)


@sealable
def test_each_access_is_what_it_says(tmp_path: Path) -> None:
    view = {}
    for access in Access:
        folder = tmp_path / access
        folder.mkdir()
        (folder / "before").write_text("secret")
        view[folder] = access
    script = (
        "for name in *; do [ -e $name/before ] && echo $name read; echo 1 2>&- >$name/new && echo $name write; done"
    )
    done = run(script, view, tmp_path)
    assert done.stdout.split("\n")[:-1] == ["private write", "read read", "write read", "write write"]
    assert [path.name for path in sorted(tmp_path.glob("*/new"))] == ["new"]
    assert (tmp_path / "write/new").read_text() == "1\n"


@sealable
def test_what_lies_in_a_hidden_folder_can_be_shown(tmp_path: Path) -> None:
    inner = tmp_path / "hidden" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("shown")
    done = run("cat hidden/inner/file; ls hidden", {tmp_path / "hidden": Access.HIDDEN, inner: Access.READ}, tmp_path)
    assert done.stdout == "showninner\n"


@sealable
def test_the_exit_code_is_that_of_the_program_and_nothing_outlives_it(tmp_path: Path) -> None:
    script = (
        "(setsid sh -c 'while :; do echo 1 >>beat; sleep 0.02; done' &); until [ -s beat ]; do sleep 0.02; done; exit 7"
    )
    assert run(script, {tmp_path: Access.WRITE}, tmp_path).returncode == 7
    size = (tmp_path / "beat").stat().st_size
    assert run("sleep 0.3", {}, tmp_path).returncode == 0
    assert (tmp_path / "beat").stat().st_size == size


@sealable
def test_a_sealed_root_has_no_rights_of_root(tmp_path: Path) -> None:
    for line in ("mount -t tmpfs none /mnt", "mknod dev b 8 0", "echo x >/proc/sys/kernel/core_pattern", "umount /tmp"):
        assert run(line, {tmp_path: Access.WRITE}, tmp_path).returncode != 0, line


def test_a_machine_without_bubblewrap_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seal.bubblewrap_problem.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert seal.bubblewrap_problem() == "bubblewrap is not installed"
    seal.bubblewrap_problem.cache_clear()
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho no namespaces >&2; exit 1\n")
    (tmp_path / "bwrap").chmod(0o755)
    assert seal.bubblewrap_problem() == "bubblewrap does not work here: no namespaces"
    seal.bubblewrap_problem.cache_clear()
    monkeypatch.setattr(seal.sys, "platform", "darwin")
    assert seal.bubblewrap_problem() == "there is no sandbox for macOS"
    seal.bubblewrap_problem.cache_clear()


def test_a_link_in_the_place_of_a_folder_of_the_run_is_not_followed(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "runs" / "task" / "run")
    layout.private.mkdir(parents=True)
    layout.agents.mkdir(parents=True)
    layout.clone("ann").symlink_to(layout.private)
    view = seal.view_of_agent(layout, "ann", share=True, hidden=[], read=[], write=[])
    assert layout.clone("ann") not in view
    assert layout.state("ann") in view


def test_what_is_read_for_an_agent_goes_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("a score")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inner").symlink_to(tmp_path / "secret")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    assert read_below(tmp_path, "secret/file", 100) == b"a score"
    assert read_below(tmp_path / "folder", "inner/file", 100) is None
    assert read_below(tmp_path / "link", "file", 100) is None
