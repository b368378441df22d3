"""Process keys: an agent's process has the agent's name, the grader of attempt 17 has `#17`, job 3 has `%3`.

A grade of attempt 17 on the hold-out is no attempt, and has the number -18: its process is `#-18`. Events, actions,
launches and the journal name processes by these keys; no agent's name begins with `#` or `%`.
"""

_GRADE, _JOB = "#", "%"


def of_grade(number: int) -> str:
    return f"{_GRADE}{number}"


def of_job(number: int) -> str:
    return f"{_JOB}{number}"


def grade_in(who: str) -> int | None:
    """Return the number in the key of a grader's process: of the attempt, or below 0 for a grade on the hold-out. None
    for other keys."""
    return _number_after(_GRADE, who)


def holdout_key(number: int) -> int:
    """Return the number, below 0, of the grade of an attempt on the hold-out. Applied to such a number, it gives the
    attempt."""
    return -1 - number


def job_in(who: str) -> int | None:
    """Return the number of the job in the key of its process. None for other keys."""
    return _number_after(_JOB, who)


def _number_after(kind: str, who: str) -> int | None:
    return int(who.removeprefix(kind)) if who.startswith(kind) else None
