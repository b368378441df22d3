"""What a grade under attack is judged to show, from its result alone."""

from pathlib import Path

import pytest
from files import write_files

from attempts.record import CLOSED
from coral.audit import audit as audits
from coral.audit.attacks import attacks
from coral.audit.audit import ALREADY_CALLED, AttackResult, State
from coral.config.load import load
from coral.grading.result import GradeResult, Outcome

FIRST = attacks()[0]
CALLS = "from coral.grader import run_candidate\n\n\ndef grade(workspace):\n    return 1\n"
IMPORTS = "def grade(workspace):\n    return 1\n"


def judged(folder: Path, score: float, scores: list[float], noise: str = "auto", code: str = IMPORTS) -> AttackResult:
    task = f"task: {{name: t, description: d}}\ngrader: {{entry: grade.py:grade, noise: {noise}}}\n"
    config = load(write_files(folder / "t", {"seed/x": "", "task.yaml": task, "grade.py": code}))
    result = GradeResult(outcome=Outcome.SCORED, score=score, channel=CLOSED)
    return audits._judged(config, FIRST, result, scores, audits.FORGED, left=0, knows=False)


@pytest.mark.parametrize(
    ("score", "noise", "state"),
    [
        (1.3, "auto", State.CLOSED),  # within four deviations of the three grades
        (1.9, "auto", State.THROUGH),
        (1.9, "0.3", State.CLOSED),  # the task says that its noise is larger than these three show
        (1.9, "10%", State.THROUGH),
        (1.9, "30%", State.CLOSED),
    ],
)
def test_a_gain_that_the_noise_explains_is_no_proof(tmp_path: Path, score: float, noise: str, state: State) -> None:
    assert judged(tmp_path, score, [0.9, 1.0, 1.1], noise).state is state


def test_run_candidate_is_advised_where_the_grader_does_not_call_it(tmp_path: Path) -> None:
    assert judged(tmp_path / "a", 9.0, [1.0, 1.0, 1.0]).advice == FIRST.advice
    assert judged(tmp_path / "b", 9.0, [1.0, 1.0, 1.0], code=CALLS).advice == ALREADY_CALLED
