"""What a grade leaves behind: the checkout goes, by other hands than the loop's; what the grader printed stays."""

import pytest
from real_runs import tries


@pytest.mark.slow
def test_checkouts_are_removed_and_outputs_are_kept(start):
    grade = "def grade(workspace):\n    print('looked at it')\n    return float((workspace / 'x.txt').read_text())\n"
    run = start([*tries(1, 2), "hang"], grade=grade)
    run.wait_for_attempts(2)
    run.stop()
    for number in (1, 2):
        left = {path.name for path in run.layout.grading(number).iterdir()}
        assert "candidate" not in left
        assert (run.layout.grading(number) / "stdout").read_text() == "looked at it\n"
