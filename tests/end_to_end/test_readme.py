"""The README's commands, run as they are written, in their order, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
# What only a person with a network and a terminal can do, and what other tests do.
ELSEWHERE = ("git clone", "make ", "pip install")
STAYS_FOR = 180


def commands() -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    return [line for line in lines if not line.startswith(ELSEWHERE)]


def test_there_is_a_first_session_to_run():
    assert [line.split()[1] for line in commands()][:3] == ["init", "validate", "start"]


def make_quick(task: Path) -> None:
    """ "Change it into yours": the built-in agent searches for half a second before it hands anything in, not five."""
    text = task.read_text()
    assert "runtime: native " in text
    task.write_text(text.replace("runtime: native ", "options: {seconds: 0.5}\n  runtime: native "))


@pytest.mark.timeout(600)
def test_the_commands_run_as_written(tmp_path):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    here = tmp_path / "here"
    here.mkdir()

    def run(line: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=here,
            env=env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=STAYS_FOR,
            check=False,
        )

    try:
        for line in commands():
            done = run(line)
            assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            if line.startswith("coral init"):
                make_quick(here / line.split()[-1] / "task.yaml")
    finally:
        run("coral stop")
    assert list((tmp_path / "home").iterdir()) == []
