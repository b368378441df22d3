"""The templates that we ship are compiled once, and not by every process that renders one."""

import os
import subprocess
import sys
from pathlib import Path

# Prints which templates Python had to compile.
RENDER = """
import sys
sys.addaudithook(lambda event, args: print(args[1]) if event == "compile" and ".j2" in str(args[1]) else None)
from heartbeats.render import render_file
assert render_file("checklist", {})
"""


def compiled(cache: Path, **variables: str) -> list[str]:
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": "", **variables}
    command = [sys.executable, "-P", "-c", RENDER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return [Path(line).name for line in done.stdout.splitlines()]


def test_the_next_process_compiles_no_template(tmp_path) -> None:
    assert compiled(tmp_path) == ["checklist.md.j2"]
    assert compiled(tmp_path) == []


def test_where_nothing_may_be_written_each_process_compiles(tmp_path) -> None:
    assert compiled(tmp_path, PYTHONDONTWRITEBYTECODE="1") == ["checklist.md.j2"]
    assert not list(tmp_path.rglob("*"))
    (tmp_path / "file").touch()
    for _ in range(2):
        assert compiled(tmp_path / "file") == ["checklist.md.j2"]
