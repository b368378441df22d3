"""A beat: a sign of life from an agent, a grade, a job or any other long work. It says what is going on, and how far it
is.

Anybody may write a beat, and it is shown on screens and archived: so every text in it is cut to a short line.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from attempts.fields import Fields, one_line

MESSAGE_LIMIT = 300
WORD_LIMIT = 60

SILENT_SECONDS = 60.0  # after so many seconds without output a program is shown as silent


class Status(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


ENDS = frozenset({Status.SUCCESS, Status.ERROR, Status.CANCELLED})


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life. `progress`: from 0 to 1, or None if unknown. `ttl`: after more than so many seconds without
    another beat something is wrong. `launch`: the number of the agent's launch; 0 in an archive for its jobs, grades
    and pulses. `session`: the program's conversation, or the id of a pulse. `task`: the run's task, or the name of the
    pulse, job or grade."""

    run: str
    agent: str
    launch: int
    status: Status
    phase: str
    progress: float | None
    message: str
    timestamp: str
    ttl: float
    session: str = ""
    task: str = ""

    @property
    def is_over(self) -> bool:
        return self.status in ENDS


def to_dict(beat: Beat) -> dict[str, object]:
    data: dict[str, object] = {name: getattr(beat, name) for name in Beat.__slots__}
    data["status"] = beat.status.value
    data["phase"], data["message"] = one_line(beat.phase, WORD_LIMIT), clean(beat.message)
    data["session"], data["task"] = one_line(beat.session, WORD_LIMIT), one_line(beat.task, WORD_LIMIT)
    return data


def from_dict(data: Mapping[str, object]) -> Beat:
    """Make a beat from plain data. ValueError names the field that is wrong."""
    fields = Fields(data, Beat.__slots__)
    return Beat(
        run=one_line(fields.text("run"), WORD_LIMIT),
        agent=one_line(fields.text("agent"), WORD_LIMIT),
        launch=fields.integer("launch"),
        status=fields.choice("status", Status),
        phase=one_line(fields.text("phase"), WORD_LIMIT),
        progress=_share(fields),
        message=clean(fields.text("message", "")),
        timestamp=one_line(fields.text("timestamp"), WORD_LIMIT),
        ttl=fields.number("ttl"),
        session=one_line(fields.text("session", ""), WORD_LIMIT),
        task=one_line(fields.text("task", ""), WORD_LIMIT),
    )


def clean(message: str) -> str:
    """Return a message as a beat may hold it: one short line."""
    return one_line(message, MESSAGE_LIMIT)


def _share(fields: Fields) -> float | None:
    if fields.get("progress") is None:
        return None
    share = fields.number("progress")
    if share > 1:
        raise fields.wrong("progress", "a number from 0 to 1")
    return share
