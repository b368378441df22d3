"""`coral doctor --fix` repairs the folders of a run: what is safe, after it has listed it, and nothing else."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from sample import make_run

from coral.preflight import doctor
from coral.preflight.repairs import BrokenFolder, FolderFault, broken_folders, repaired
from workspace.layout import Layout

Coral = Callable[..., tuple[int, str, str]]


@pytest.fixture
def layout(operators_shell: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """A run, the current directory; the machine is looked at elsewhere."""
    made = make_run(tmp_path / "runs")
    monkeypatch.setattr(doctor, "inspect_machine", lambda folder, config: iter(()))
    monkeypatch.chdir(made.root)
    return made


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def checks(coral: Coral, *words: str) -> list[list[str]]:
    code, out, _ = coral("doctor", "--json", *words)
    assert code == 0
    return [[check["name"], check["state"], check["text"]] for check in json.loads(out)["checks"]]


def test_a_sound_run_has_nothing_to_repair(layout: Layout, coral: Coral) -> None:
    assert checks(coral, "--fix") == []


def test_all_is_listed_then_repaired_and_what_stands_there_stays(layout: Layout, coral: Coral) -> None:
    layout.requests_of("agent-2").rmdir()
    layout.logs_of_all.chmod(0o755)
    layout.heartbeats.chmod(0o555)
    (layout.private / "kept").write_text("answer")
    listed = [
        ["run", "note", "logs can be opened by others"],
        ["run", "note", "heartbeats cannot be used by its owner"],
        ["run", "note", "requests/agent-2 is missing"],
    ]
    assert checks(coral) == listed
    assert coral("doctor")[1].count("`coral doctor --fix` repairs it") == 3
    assert (mode(layout.logs_of_all), mode(layout.heartbeats)) == (0o755, 0o555)
    assert not layout.requests_of("agent-2").exists()
    assert checks(coral, "--fix") == [
        *listed,
        ["repair", "well", "logs is closed to others"],
        ["repair", "well", "heartbeats can be used by its owner"],
        ["repair", "well", "requests/agent-2 was made"],
    ]
    assert (mode(layout.logs_of_all), mode(layout.heartbeats)) == (0o700, 0o755)
    assert (layout.requests_of("agent-2").is_dir(), (layout.private / "kept").read_text()) == (True, "answer")
    assert checks(coral, "--fix") == []


def test_what_is_not_safe_is_only_said(layout: Layout, coral: Coral, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    layout.states.rename(tmp_path / "states")
    layout.states.symlink_to(elsewhere)
    said = checks(coral, "--fix")
    assert said[0] == ["run", "note", "workspace/state is no folder"]
    assert "repair" not in {name for name, _, text in said if text.startswith("workspace/state is")}
    assert (layout.states.is_symlink(), mode(elsewhere)) == (True, 0o755)
    # One that took its place since it was looked at.
    swapped = repaired(layout, BrokenFolder(layout.states, FolderFault.OPEN))
    assert (swapped.state, mode(elsewhere)) == (doctor.Health.NOTE, 0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder to a group")
def test_the_group_of_agents_with_users_of_their_own_still_passes(layout: Layout, coral: Coral) -> None:
    os.chown(layout.private, 0, 54_321)
    layout.private.chmod(0o710)
    assert broken_folders(layout, []) == []
    layout.private.chmod(0o755)
    assert checks(coral, "--fix")[-1] == ["repair", "well", "private is closed to others"]
    assert mode(layout.private) == 0o710


def test_an_agent_repairs_nothing(layout: Layout, coral: Coral, monkeypatch: pytest.MonkeyPatch) -> None:
    layout.logs_of_all.chmod(0o755)
    monkeypatch.setenv("CORAL_AGENT", "agent-1")
    code, _, errors = coral("doctor", "--fix")
    assert (code, mode(layout.logs_of_all)) == (1, 0o755)
    assert errors.startswith("coral: cannot repair a run: that is for the operator")


def test_without_a_run_there_is_nothing_to_fix(operators_shell: None, coral: Coral, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, _, errors = coral("doctor", "--fix")
    assert (code, errors.splitlines()[0][:24]) == (1, "coral: cannot find a run")
