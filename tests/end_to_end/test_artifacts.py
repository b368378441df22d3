"""The artifacts of an attempt are kept, also where the supervisor is killed as soon as the record is published."""

from real_runs import tries, wait_until

GRADE = """
def grade(workspace, artifacts):
    (artifacts / "text.txt").write_text((workspace / "x.txt").read_text())
    return 1.0
"""


def test_a_grade_that_was_published_and_not_ended_is_ended_by_the_next_supervisor(start) -> None:
    run = start([*tries(1), "hang"], grade=GRADE)
    run.wait_for_attempts(1)
    kept, folder = run.layout.grade(1) / "text.txt", run.layout.grading(1)
    wait_until(kept.exists, what="its artifacts")
    wait_until(lambda: not {"artifacts", "candidate-1"} & {path.name for path in folder.iterdir()}, what="its end")
    run.kill()
    (folder / "candidate-1").mkdir()
    (folder / "artifacts").mkdir()
    kept.rename(folder / "artifacts" / "text.txt")
    run.supervise()
    wait_until(kept.exists, what="its artifacts again")
    wait_until(lambda: not (folder / "candidate-1").exists(), what="the end of its grade")
