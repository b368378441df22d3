"""What a grade leaves behind: the checkout goes, by other hands than the loop's; what the grader printed stays."""

import contextlib
import threading

from real_runs import tries

from attempts.record import Kind
from coral.config.load import load_frozen
from coral.fleet.actions import CheckOut
from coral.grading.checkout import prepare_grade


def test_checkouts_are_removed_and_outputs_are_kept(start):
    grade = "def grade(workspace):\n    print('looked at it')\n    return float((workspace / 'x.txt').read_text())\n"
    run = start([*tries(1, 2), "hang"], grade=grade)
    run.wait_for_attempts(2)
    run.stop()
    for number in (1, 2):
        left = {path.name for path in run.layout.grading(number).iterdir()}
        assert not [name for name in left if name.startswith(("candidate", ".index"))]
        assert (run.layout.grading(number) / "stdout").read_text() == "looked at it\n"


def test_a_checkout_that_a_dead_supervisor_left_running_is_in_nobodys_way(start):
    layout = start(["hang"], supervise=False).layout
    config, commit = load_frozen(layout.task_file), (layout.private / "seed").read_text()
    prepare_grade(layout, config, CheckOut(number=1, launch=1, commit=commit, kind=Kind.REAL), None)
    straggling, over = layout.grading(1) / "candidate-1", threading.Event()

    def straggle():
        while not over.is_set():
            with contextlib.suppress(OSError):
                straggling.mkdir(parents=True, exist_ok=True)
                (straggling / "x.txt").write_text("of somebody else")

    thread = threading.Thread(target=straggle)
    thread.start()
    try:
        for launch in range(2, 12):
            prepare_grade(layout, config, CheckOut(number=1, launch=launch, commit=commit, kind=Kind.REAL), None)
            assert [
                (path.name, path.read_text()) for path in (layout.grading(1) / f"candidate-{launch}").iterdir()
            ] == [("x.txt", "0")]
    finally:
        over.set()
        thread.join()
