"""The commands of the documents, run as they are written, in their order, in an empty folder for each page."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pages import ROOT, SHOWN, blocks, write_files

pytestmark = pytest.mark.slow

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


class Shell:
    """Runs lines as somebody would type them, with a home of its own, in an empty folder."""

    def __init__(self, tmp_path: Path) -> None:
        self.home, self.here = tmp_path / "home", tmp_path / "here"
        self.home.mkdir()
        self.here.mkdir()
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "HOME": str(self.home)}

    def run(self, line: str) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.here,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=STAYS_FOR,
            check=False,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    subprocess.run(["coral", "stop"], cwd=made.here, env=made.env, capture_output=True, timeout=STAYS_FOR, check=False)
    assert list(made.home.iterdir()) == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run_as_written(page: Path, shell: Shell) -> None:
    write_files(shell.here, [page])
    for line in commands(page):
        shell.run(line)
        if line.startswith("coral init"):
            make_quick(shell.here / line.split()[-1] / "task.yaml")


SIEVE = """def count_primes(below):
    is_prime = [False, False] + [True] * max(below - 2, 0)
    for n in range(2, int(below**0.5) + 1):
        if is_prime[n]:
            is_prime[n * n :: n] = [False] * len(is_prime[n * n :: n])
    return sum(is_prime[:below])
"""
SCRIPT = [{"edit": {"file": "primes.py", "content": SIEVE}}, {"submit": "a sieve"}, {"hang": None}]
# In the place of what costs money: an agent that submits a sieve.
INSTEAD = f"agents.runtime=scripted agents.count=1 'agents.options={json.dumps({'script': SCRIPT})}' budget.attempts=1"


@pytest.mark.timeout(600)
def test_the_task_of_four_paid_agents_runs_with_a_scripted_one(shell: Shell) -> None:
    """What that page says of the start, of looking and of taking the result; only the model is another."""
    page = ROOT / "docs/your-repository.md"
    write_files(shell.here, [page])
    shell.run("cd my-repository && git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm x")
    start, _, look, take = ([*block.commands] for block in blocks([page]) if block.kind == "sh" and block.mark)
    shell.run(f"{start[0]} {INSTEAD}")
    best = json.loads(shell.run("coral status --json"))["best"]
    assert best["title"] == "a sieve"
    assert [line.split()[1] for line in (*look, *take)] == [
        "status",
        "notes",
        "show",
        "tell",
        "verify",
        "export",
        "resume",
    ]
    for line in (*look, *take[:2]):
        # On a busy machine a time is not always the same again, which is what the exit code of `verify` says.
        may_differ = " || test $? -eq 1" if line.startswith("coral verify") else ""
        shell.run(line.replace("17", str(best["number"])) + may_differ)
    assert "is_prime" in shell.run(f"git -C my-repository show coral/faster-{best['number']}:primes.py")
    shell.run(f"{take[2]} budget.attempts=9 --detach")
