"""Process keys: an agent's process has the agent's name, the grader of attempt 17 has `#17`, job 3 has `%3`. A grade of
attempt 17 on the hold-out is no attempt, and has the number -18: `#-18`.

Events, actions, launches and the journal name processes by these keys; no agent's name begins with `#` or `%`.
"""

_GRADE, _JOB = "#", "%"


def of_grade(number: int) -> str:
    return f"{_GRADE}{number}"


def of_job(number: int) -> str:
    return f"{_JOB}{number}"


def grade_in(who: str) -> int | None:
    """The number of the attempt that this process grades; None where it is no grader."""
    return _number_after(_GRADE, who)


def holdout_key(number: int) -> int:
    """The number below 0 of an attempt's grade on the hold-out; of such a number, the attempt."""
    return -1 - number


def job_in(who: str) -> int | None:
    """The number of the job; None where the process is no job."""
    return _number_after(_JOB, who)


def _number_after(kind: str, who: str) -> int | None:
    return int(who.removeprefix(kind)) if who.startswith(kind) else None
