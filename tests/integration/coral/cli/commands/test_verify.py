"""`coral verify`: the same files, the same grader, the same score; or why not."""

import importlib.util
import json
import marshal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from real_runs import Run, tries

from attempts.store import Store
from coral.journal import fold
from coral.runs.task_files import changed

GRADE = """
import pathlib
from coral.grader import Void

def grade(workspace, private):
    said = pathlib.Path({said!r})
    if said.exists() and said.read_text() == "void":
        raise Void("the data is away")
    return float((workspace / "x.txt").read_text()) + (float(said.read_text()) if said.exists() else 0.0)
"""


@pytest.fixture
def said(tmp_path: Path) -> Path:
    """What the grader adds to a score."""
    return tmp_path / "said"


@pytest.fixture
def run(start, said: Path) -> Run:
    made: Run = start(tries(2, 3), grade=GRADE.format(said=str(said)))
    made.wait_for_attempts(2)
    made.stop()
    return made


def test_what_scores_the_same_again_is_verified_and_an_export_says_so(run: Run, coral, said: Path, capsys) -> None:
    words = ("--run", str(run.layout.root))
    assert coral("verify", "2", *words)[:2] == (0, "#2 is verified: it scores 3 again (channel closed)\n")
    found = json.loads(coral("verify", "0", "--json", *words)[1])
    assert (found["number"], found["recorded"], found["score"], found["is_same"]) == (0, 0.0, 0.0, True)
    said.write_text("0.5")
    code, out, _ = coral("verify", "2", *words)
    assert (code, out) == (1, "#2 is not verified: its record says 3, and now it scores 3.5\n")
    said.write_text("what")
    code, out, _ = coral("verify", "2", *words)
    assert (code, "#2 is not verified: its record says 3, and now the grader crashed" in out) == (1, True)
    said.write_text("void")
    code, _, error = coral("verify", "2", *words)
    assert (code, "cannot verify #2: it could not be graded: the data is away" in error) == (1, True)
    assert not list((run.layout.private / "verify").iterdir())
    assert changed(run.layout.private, fold(run.layout.journal).files, {}) == []


def test_noise_is_allowed_for(run: Run, coral, said: Path) -> None:
    status = json.loads(run.layout.status.read_text())
    run.layout.status.write_text(json.dumps({**status, "noise": 0.2}))
    said.write_text("0.5")
    assert coral("verify", "2", "--run", str(run.layout.root))[0] == 0
    said.write_text("0.7")
    assert coral("verify", "2", "--run", str(run.layout.root))[0] == 1


def test_another_grader_or_another_commit_proves_nothing(run: Run, coral) -> None:
    words, store = ("--run", str(run.layout.root)), Store(run.layout.attempts)
    store.publish(replace(store.read(2), commit=store.read(1).commit))
    code, _, err = coral("verify", "2", *words)
    assert (code, "cannot verify #2: its commit has other files than its record says" in err) == (1, True)
    (run.layout.grader / "grade.py").write_text("def grade(workspace): return 999")
    code, _, err = coral("verify", "1", *words)
    assert (code, "cannot verify #1: private/grader/grade.py was changed" in err) == (1, True)


def test_compiled_code_that_somebody_put_there_grades_nothing(run: Run, coral) -> None:
    code = marshal.dumps(compile("def grade(workspace): return 999.0", "grade.py", "exec"))
    cache = run.layout.grader / "__pycache__" / f"grade.{sys.implementation.cache_tag}.pyc"
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + bytes(8) + code)  # of no source that is compared
    assert coral("verify", "2", "--run", str(run.layout.root))[0] == 0


def test_a_run_that_ends_by_itself_verifies_its_best(start, coral, said: Path) -> None:
    run: Run = start(tries(2, 3), grade=GRADE.format(said=str(said)), overrides=("budget.attempts=2",))
    run.wait_for_end()
    (number,) = [line["attempt"] for line in run.events("verified")]
    assert json.loads(run.layout.verified.read_text())[str(number)]["is_same"] is True
    assert "is verified: it scores 3 again" in run.events("verified")[0]["text"]


def test_a_best_that_does_not_score_the_same_is_told(start, said: Path) -> None:
    """Its grader takes one off from its second grade of an attempt on."""
    script = GRADE.format(said=str(said)).replace("(workspace, private)", "(workspace, private, kind)")
    script = script.replace("    return ", "    score = ") + "    if kind == 'real':\n        said.write_text('-1')\n"
    script += "    return score\n"
    run: Run = start(tries(2), grade=script, overrides=("budget.attempts=1", "grader.noise=0"))
    run.wait_for_end()
    assert run.events("verified") == []
    assert any("#1 is not verified" in line["text"] for line in run.events("warning"))


def test_a_run_that_is_stopped_ends_at_once(run: Run) -> None:
    assert run.events("verifying") == []
