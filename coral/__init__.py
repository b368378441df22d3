"""Coral: a supervisor for fleets of coding agents on one optimization problem.

`coral.run` starts a run, `coral.open_run` reads one: docs/python.md.
"""

TYPE_CHECKING = False  # as in typing, which nothing else of an eval needs
if TYPE_CHECKING:
    from attempts.record import Attempt, Direction, Kind, Verdict
    from coral.api.curve import RunCurve
    from coral.api.handle import RunHandle, run
    from coral.api.rows import Rows
    from coral.api.run_data import RunData, open_run
    from coral.api.usage import AgentUsage, RunUsage
    from coral.errors import CoralError
    from coral.reading.attempt_rows import MeasuredAttempt
    from coral.reading.knowledge_view import JudgedNote
    from coral.views.curve import BestStep, Point
    from coral.views.evidence import Evidence
    from workspace.notes import Note

__version__ = "0.1.0"

# Public name -> where it is. Imported when it is first asked for: `import coral` comes before every `coral eval`.
_PLACES = {
    "open_run": "coral.api.run_data",
    "run": "coral.api.handle",
    "RunData": "coral.api.run_data",
    "RunHandle": "coral.api.handle",
    "Rows": "coral.api.rows",
    "Attempt": "attempts.record",
    "MeasuredAttempt": "coral.reading.attempt_rows",
    "Direction": "attempts.record",
    "Kind": "attempts.record",
    "Verdict": "attempts.record",
    "JudgedNote": "coral.reading.knowledge_view",
    "Note": "workspace.notes",
    "Evidence": "coral.views.evidence",
    "RunCurve": "coral.api.curve",
    "BestStep": "coral.views.curve",
    "Point": "coral.views.curve",
    "RunUsage": "coral.api.usage",
    "AgentUsage": "coral.api.usage",
    "CoralError": "coral.errors",
}
__all__ = [
    "AgentUsage",
    "Attempt",
    "BestStep",
    "CoralError",
    "Direction",
    "Evidence",
    "JudgedNote",
    "Kind",
    "MeasuredAttempt",
    "Note",
    "Point",
    "Rows",
    "RunCurve",
    "RunData",
    "RunHandle",
    "RunUsage",
    "Verdict",
    "open_run",
    "run",
]


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
