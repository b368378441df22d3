"""The wheel is the product: installed into an empty environment, it makes a task, checks it and runs a fleet on it."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from coral import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ROOMS = ("attempts", "heartbeats", "workspace", "coral")
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check", "--no-cache-dir")
POISON = "raise RuntimeError('a folder of the user was taken for one of ours')\n"


def environment(home: Path) -> dict[str, str]:
    """What a new user has: nothing of this checkout, nothing of ours, a home of his own."""
    mine = ("PYTHON", "VIRTUAL_ENV", "CORAL", "GIT_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(mine)}
    return {**kept, "HOME": str(home)}


def run(command: list[str | Path], cwd: Path, env: dict[str, str], expect: int = 0) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode == expect, f"{command} exited {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def build(tmp_path: Path) -> Path:
    """A wheel from this checkout. pip keeps the settings of the machine, wherever they are."""
    command = [sys.executable, *PIP, "wheel", ROOT, "--no-deps", "--wheel-dir", tmp_path / "dist"]
    run(command, tmp_path, {**os.environ})
    (wheel,) = (tmp_path / "dist").glob("coral_fleet-*.whl")
    return wheel


def shipped() -> set[str]:
    """Every file of the four packages that is no product of running them; in ours the examples, and the pages that
    `coral help` shows."""
    folders = (*ROOMS, "docs", "examples")
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    names = {path.relative_to(ROOT) for path in paths if "__pycache__" not in path.parts}
    of_a_task = {name for name in names if name.parts[0] == "examples" and "runs" in name.parts}
    return {f"coral/{name}" if name.parts[0] in ("docs", "examples") else str(name) for name in names - of_a_task}


@pytest.mark.timeout(900)
def test_the_wheel_works_in_an_empty_environment(tmp_path) -> None:
    wheel = build(tmp_path)
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert packed == shipped()

    venv.create(tmp_path / "env")
    # By our pip and without compiling what is never imported: either takes longer than all that is tested.
    install = [sys.executable, *PIP, "--python", tmp_path / "env/bin/python", "install", "--no-compile"]
    run([*install, wheel], tmp_path, {**os.environ})
    coral = tmp_path / "env/bin/coral"

    here = tmp_path / "here"
    for name in ("attempts", "workspace", "home"):
        (here / name).mkdir(parents=True)
        (here / name / "__init__.py").write_text(POISON)
    env = environment(here / "home")
    assert run([coral, "--version"], here, env) == f"coral {__version__}\n"
    assert "grader.private" in run([coral, "help", "graders"], here, env)
    assert "complete " in run([coral, "completion", "bash"], here, env)
    assert len(json.loads(run([coral, "examples", "--json"], here, env))) == len(
        list(ROOT.glob("examples/*/task.yaml"))
    )
    run([coral, "init", "fit"], here, env)
    assert "scipy is not installed; `" in run([coral, "validate", "fit"], here, env, expect=1)
    run([*install, f"{wheel}[search]"], tmp_path, {**os.environ})
    assert "Ready for `coral start`" in run([coral, "validate", "fit"], here, env)
    a_fleet_runs(coral, here, env)


def a_fleet_runs(coral: Path, here: Path, env: dict[str, str]) -> None:
    """Two native agents on the scaffolded task, until four attempts are graded."""
    start = [coral, "start", "fit", "budget.attempts=4", "budget.hours=0.1", "agents.options={seconds: 0.5}", "--plain"]
    said = run([*start], here, env)
    (folder,) = (here / "runs" / "fit").iterdir()
    records = [json.loads(path.read_text()) for path in sorted((folder / "attempts").glob("[0-9]*.json"))]
    graded = [record for record in records if record["kind"] != "baseline" and record["score"] is not None]
    assert len(graded) >= 4, said
    assert min(record["score"] for record in graded) < records[0]["score"], said
    status = json.loads(run([coral, "status", "--json"], here, env))
    assert status["state"] == "stopped"
    refused = run([coral, "--version"], here, {**env, "PYTHONPATH": str(here)}, expect=1)
    assert "coral: cannot start: the package 'attempts' is not Coral's own" in refused
