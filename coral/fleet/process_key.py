"""Under what name a process is launched: an agent under its own, the grade of an attempt as `#17`, a job as `%3`.

Decisions, launches and the journal tell them apart by it; no agent's name begins like the others.
"""

_GRADE, _JOB = "#", "%"


def of_grade(number: int) -> str:
    return f"{_GRADE}{number}"


def of_job(number: int) -> str:
    return f"{_JOB}{number}"


def grade_in(who: str) -> int | None:
    """The number of the attempt that is graded there; None where it is no grade."""
    return _number_after(_GRADE, who)


def job_in(who: str) -> int | None:
    """The number of the job; None where it is none."""
    return _number_after(_JOB, who)


def _number_after(kind: str, who: str) -> int | None:
    return int(who.removeprefix(kind)) if who.startswith(kind) else None
