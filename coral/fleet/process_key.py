"""Process keys: an agent's process has the agent's name, the grader of attempt 17 has `#17`, job 3 has `%3`.

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


def job_in(who: str) -> int | None:
    """The number of the job; None where the process is no job."""
    return _number_after(_JOB, who)


def _number_after(kind: str, who: str) -> int | None:
    return int(who.removeprefix(kind)) if who.startswith(kind) else None
