"""The tool `search` in a real clone: from another program, from other values, and from files without variables."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from native_agent import LocalAgent
from sample import attempt

from coral.native.calls import Search
from coral.native.memory import KnownAttempts
from coral.native.options import Options
from coral.native.search.explore import THREADS
from coral.native.tool_error import ToolError

CHECK = """import json, pathlib
def check(folder):
    root = pathlib.Path(folder)
    offset = int((root / "offset").read_text())
    numbers = [json.loads(path.read_text())["x"] for path in [*root.glob("*.json"), *root.glob("more/*.json")]]
    return {"score": offset - sum((x - 3) ** 2 for x in numbers), "slack": [50.0 - x for x in numbers]}
"""
NEAR = 10  # of the score of a program: on a slow machine the time of a search ends before it has improved anything


class ClonedAgent(LocalAgent):
    """An agent with a public check, whose clone is in git; it knows the attempts that are committed."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.explorer = self.bench.explorer
        self.explorer.options, self.explorer.check = Options(seconds=0.1), "check.py"
        self.explorer.editable = ["p.json", "more/*.json"]
        self.git("init", "-q")
        (self.clone / ".git/info/exclude").write_text(".shared\n")

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        ended = subprocess.run(["git", *who, *arguments], cwd=self.clone, check=True, capture_output=True, text=True)
        return ended.stdout.strip()

    def commit(self, number: int, **files: str) -> None:
        """Commit these files on top of those that are there, and know the commit as an attempt."""
        for name, text in files.items():
            path = self.clone / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"attempt {number}")
        known = self.snapshots.memory.known
        record = attempt(number, float(number), agent="agent-1", commit=self.git("rev-parse", "HEAD"))
        known = KnownAttempts(recent=(*known.recent, record))
        self.snapshots.memory = replace(self.snapshots.memory, known=known)

    def expected(self, start: int) -> float:
        """Search from an attempt; return the score that the check says."""
        expected = self.explorer.search(Search(family="compass", start=start, why="")).candidate.trial.expected
        assert expected is not None
        return expected


@pytest.fixture
def cloned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClonedAgent]:
    monkeypatch.setenv(THREADS, "1")
    made = ClonedAgent(tmp_path / "run")
    yield made
    made.explorer.close()
    made.file.close()


def test_the_check_measures_the_program_from_which_a_search_starts(cloned: ClonedAgent):
    """Its files without variables too, and those in folders that the program before had not."""
    cloned.commit(1, check_py=CHECK, offset="0")
    cloned.commit(2, offset="100", more__q_json='{"x": 2.5}')
    cloned.git("checkout", "-q", cloned.snapshots.memory.known.recent[0].commit)
    assert cloned.explorer.constraints() == 1
    assert cloned.expected(2) == pytest.approx(100, abs=NEAR)
    assert cloned.explorer.constraints() == 2
    assert cloned.expected(1) == pytest.approx(0, abs=NEAR)
    assert cloned.explorer.constraints() == 1


def test_other_values_of_the_same_program_are_measured_by_the_same_process(cloned: ClonedAgent):
    cloned.commit(1, check_py=CHECK, offset="0")
    cloned.commit(2, p_json='{"x": 9.25}')
    cloned.expected(1)
    check = cloned.explorer._public_check
    cloned.expected(2)
    assert cloned.explorer._public_check is check


def test_from_files_without_variables_the_clone_goes_back(cloned: ClonedAgent):
    cloned.commit(1, check_py=CHECK, offset="0")
    cloned.commit(2, p_json='{"x": "none"}')
    cloned.expected(1)
    with pytest.raises(ToolError, match="cannot start from #2"):
        cloned.expected(2)
    assert cloned.explorer.families()
    assert cloned.git("rev-parse", "HEAD") == cloned.snapshots.memory.known.recent[0].commit
    cloned.expected(1)


LOADED = """
import sys
from random import Random
from coral.native.search import episode
assert "numpy" not in sys.modules
from coral.native.search.numeric.evolution import Evolution
evolution = Evolution([0, 1, 2], [1.0] * 3, [1.0] * 3)
evolution.begin([1.0] * 3, Random(1))
drawn = evolution.strategy.ask()
evolution.strategy.tell(drawn, [sum(x * x for x in point) for point in drawn])
assert "matplotlib" not in sys.modules
import matplotlib
"""


def test_a_search_loads_what_it_needs_alone():
    """Each launch loads it anew: numpy and scipy take half a second, and matplotlib, which cma would load, a whole."""
    pytest.importorskip("matplotlib")
    subprocess.run((sys.executable, "-W", "ignore", "-c", LOADED), check=True)
