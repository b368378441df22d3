"""`coral verify`: the same files, the same grader, the same score; or why not."""

import importlib.util
import json
import marshal
import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from real_runs import Run, tries
from strangers import owning

from attempts.noise import Noise
from attempts.store import Store
from coral.journal import fold
from coral.runs.task_files import changed
from coral.runs.verify import Verification, scores_the_same

GRADE = """
import pathlib
from coral.grader import Void

def grade(workspace, private):
    said = pathlib.Path({said!r})
    if said.exists() and said.read_text() == "void":
        raise Void("the data is away")
    return float((workspace / "x.txt").read_text()) + (float(said.read_text()) if said.exists() else 0.0)
"""


def test_of_a_run_that_cannot_be_written_nothing_is_verified(run: Run, coral) -> None:
    words = ("verify", "2", "--run", str(run.layout.root))
    coral(*words)  # what a command imports late, a stranger to this interpreter could not read either
    (run.layout.private / "verify").rmdir()
    with owning(run.layout.root):
        run.layout.private.chmod(0o555)
        code, _, error = coral(*words)
        run.layout.private.chmod(0o755)
    assert (code, "cannot verify #2" in error, "private/verify cannot be written: Permission denied" in error) == (
        1,
        True,
        True,
    )
    assert "verify a copy of the run" in error


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
    assert (code, out) == (1, "#2 is not verified: the median of its grades is 3, and now it scores 3.5\n")
    said.write_text("what")
    code, out, _ = coral("verify", "2", *words)
    assert (code, "#2 is not verified: the median of its grades is 3, and now the grader crashed" in out) == (1, True)
    said.write_text("void")
    code, _, error = coral("verify", "2", *words)
    assert (code, "cannot verify #2: it could not be graded: the data is away" in error) == (1, True)
    assert not list((run.layout.private / "verify").iterdir())
    assert changed(run.layout.private, fold(run.layout.journal).files, {}) == []


def test_the_noise_at_the_score_of_an_attempt_is_allowed_for(start, coral, said: Path) -> None:
    """It is a tenth of the score here: 0.2 at the first attempt, 3 at the best. status.json is not needed for it."""
    noisy = ("grader.noise=10%", "grader.confirm=0")
    run: Run = start(tries(2, 30), grade=GRADE.format(said=str(said)), overrides=noisy)
    run.wait_for_attempts(2)
    run.stop()
    words = ("--run", str(run.layout.root))
    for harm in (lambda: None, run.layout.status.unlink):
        harm()
        said.write_text("0.8")
        assert coral("verify", "1", *words)[0] == 0
        said.write_text("0.9")
        assert coral("verify", "1", *words)[0] == 1
        assert coral("verify", "2", *words)[0] == 0
        assert json.loads(coral("verify", "2", "--json", *words)[1])["noise"] == pytest.approx(3.0)


def test_a_trial_of_numbers_is_not_verified_by_the_rule_of_an_attempt(start, coral, said: Path) -> None:
    script = GRADE.format(said=str(said)).replace("(workspace, private)", "(workspace, private, kind)")
    script = script.replace("    return ", "    return (kind == 'tune') + ")
    steps = [{"edit": {"file": "x.txt", "content": "2"}}, {"submit": {"message": "a trial", "tune": True}}]
    run: Run = start(steps, grade=script)
    run.wait_for_attempts(1)
    run.stop()
    assert Store(run.layout.attempts).read(1).score == 3.0
    code, _, error = coral("verify", "1", "--run", str(run.layout.root))
    assert (code, error.splitlines()[0]) == (
        1,
        "coral: cannot verify #1: it is a trial of numbers (--tune), which graders may score by another rule",
    )


EXACT = Noise(0.0, math.inf)


@pytest.mark.parametrize(
    ("score", "recorded", "noise", "is_same"),
    [
        (0.1 + 0.2, [0.3], EXACT, True),
        (3e-10, [1e-10], EXACT, False),  # a difference that is small beside 1, and not beside the score
        (1e-10, [1e-10], Noise(), True),
        (1.1, [1.0], Noise(), False),
        (0.0, [0.0], EXACT, True),
        (1e-300, [0.0], EXACT, False),
        (1e12 + 1, [1e12], EXACT, True),
        (1.0 + 4e-5, [1.0], Noise(1e-5, math.inf), True),  # the difference of two grades is noisier than one of them
        (1.0 + 5e-5, [1.0], Noise(1e-5, math.inf), False),
        (1.0 + 4e-5, [0.9, 1.0, 1.1], Noise(1e-5, math.inf), False),  # there the median has hardly an error
        (1.0 + 5e-5, [1.0], Noise(1e-5, 3), True),  # the noise itself is known roughly
    ],
)
def test_a_score_is_the_same_relative_to_its_size(
    score: float, recorded: list[float], noise: Noise, is_same: bool
) -> None:
    assert scores_the_same(score, recorded, noise) is is_same


def test_that_the_noise_is_not_known_is_said() -> None:
    found = Verification(2, 3.0, 3.5, "", "closed", False, None)
    assert found.text == (
        "#2 is not verified: the median of its grades is 3, and now it scores 3.5; how far grades of one commit differ "
        "here is not known"
    )


def test_a_score_that_only_the_noise_makes_the_same_is_said_to_be_within_it() -> None:
    found = Verification(2, 3.0, 3.5, "", "closed", True, 0.4)
    assert found.text == "#2 is verified: it scores 3.5 now, within the noise of 3 (channel closed)"


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
