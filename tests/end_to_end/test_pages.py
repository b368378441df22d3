"""The commands of the documents, run as they are written, in their order, in an empty folder for each page."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, SHOWN, blocks, write_files

PAGES = [page for page in SHOWN if any(block.kind == "sh" and not block.mark for block in blocks([page]))]
STAYS_FOR = 180


def commands(page: Path) -> list[str]:
    """What a test can run: all but what says that it needs something else."""
    return [line for block in blocks([page]) if block.kind == "sh" and not block.mark for line in block.commands]


def test_the_readme_begins_with_a_session_to_run() -> None:
    assert [line.split()[1] for line in commands(ROOT / "README.md")][:3] == ["init", "validate", "start"]


def make_quick(task: Path) -> None:
    """ "Change it into yours": the built-in agent searches for half a second before it hands anything in, not five."""
    text = task.read_text()
    assert "runtime: native " in text
    task.write_text(text.replace("runtime: native ", "options: {seconds: 0.5}\n  runtime: native "))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    here = tmp_path / "here"
    here.mkdir()
    write_files(here, [page])

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
        for line in commands(page):
            done = run(line)
            assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
            assert "Traceback" not in done.stderr
            if line.startswith("coral init"):
                make_quick(here / line.split()[-1] / "task.yaml")
    finally:
        run("coral stop")
    assert list((tmp_path / "home").iterdir()) == []
