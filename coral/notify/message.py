"""Makes messages for people from lines of the timeline; several lines make one message. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from attempts.fields import one_line

SHOWN = 20  # notices that one message names; the others are counted
TEXT_LENGTH = 400  # characters of one notice
NAME_LENGTH = 60
QUESTION_LENGTH = 200


class AlertLevel(StrEnum):
    """Which notices a target gets. ALERT: those that need a person, and the end of the run. NEWS: new bests as well."""

    ALERT = "alert"
    NEWS = "news"


@dataclass(frozen=True, slots=True)
class Notice:
    """One line of the timeline that people are told of. `id`: the same each time that it is sent; `at`: when it was
    written, in ISO 8601; `count`: how many lines said the same."""

    id: str
    level: AlertLevel
    at: str
    agent: str
    text: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question of an agent that nobody has answered yet."""

    number: int
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class Message:
    run: str
    task: str
    notices: tuple[Notice, ...]
    omitted: int = 0
    questions: tuple[OpenQuestion, ...] = ()

    @property
    def title(self) -> str:
        count = len(self.notices) + self.omitted
        alerts = sum(notice.level is AlertLevel.ALERT for notice in self.notices)
        if count == 1:
            return f"Coral · {self.task}: {_words(self.notices[0])[:80]}"
        return f"Coral · {self.task}: {count} notices" + (f", {alerts} of them alerts" if alerts else "")

    @property
    def text(self) -> str:
        lines = [f"{notice.at[:16].replace('T', ' ')}  {_words(notice)}" for notice in self.notices]
        lines += [f"and {self.omitted} more: coral alerts --run {self.run}"] if self.omitted else []
        lines += [
            f"open question {question.number} of {question.agent}: {question.text}  "
            f"coral answer {question.number} '...' --run {self.run}"
            for question in self.questions
        ]
        return "\n".join([*lines, f"run {self.run}"])

    def data(self) -> dict[str, Any]:
        """Return the JSON that a webhook receives. Chat services show its `text`."""
        rows = [
            {"id": notice.id, "level": notice.level, "at": notice.at, "agent": notice.agent, "text": notice.text}
            | ({"count": notice.count} if notice.count > 1 else {})
            for notice in self.notices
        ]
        shown = {"text": f"{self.title}\n{self.text}", "run": self.run, "task": self.task}
        asked = [
            {"number": question.number, "agent": question.agent, "text": question.text} for question in self.questions
        ]
        return {**shown, "alerts": rows, "omitted": self.omitted, "questions": asked}


def _words(notice: Notice) -> str:
    who = f"{notice.agent}: " if notice.agent else ""
    times = f" ({notice.count} times)" if notice.count > 1 else ""
    return f"{who}{notice.text}{times}"


def notice_of(run: str, line: bytes) -> Notice | None:
    """Return the notice in a line of the timeline; None if nobody is told of such a line, or it is no event of Coral.
    `run`: the run's name."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or (level := _level_of(event)) is None:
        return None
    at, text, agent = (str(event.get(name, "")) for name in ("at", "text", "agent"))
    id = str(event.get("id") or f"{run}-{event.get('type')}-{at}")
    return Notice(id=id, level=level, at=at, agent=one_line(agent, NAME_LENGTH), text=one_line(text, TEXT_LENGTH))


def _level_of(event: Mapping[str, Any]) -> AlertLevel | None:
    match event.get("type"):
        case "alert" | "stopped":
            return AlertLevel.ALERT
        case "published" if event.get("is_best") is True:
            return AlertLevel.NEWS
        case "verified":
            return AlertLevel.NEWS
    return None


def questions_in(status: Mapping[str, Any]) -> tuple[OpenQuestion, ...]:
    """Return the open questions in status.json, at most SHOWN."""
    rows = status.get("questions")
    found = [row for row in (rows if isinstance(rows, list) else []) if isinstance(row, dict)]
    return tuple(
        OpenQuestion(row["number"], one_line(str(row.get("agent", "")), NAME_LENGTH), _question(row))
        for row in found[:SHOWN]
        if type(row.get("number")) is int
    )


def _question(row: Mapping[str, Any]) -> str:
    return one_line(str(row.get("text", "")), QUESTION_LENGTH)


def compose(run: str, task: str, notices: Sequence[Notice], questions: tuple[OpenQuestion, ...] = ()) -> Message:
    """Return one message with these notices. Notices of one agent with the same text are counted and stand there
    once."""
    first: dict[tuple[str, str], Notice] = {}
    counts: dict[tuple[str, str], int] = {}
    for notice in notices:
        what = (notice.agent, notice.text)
        first.setdefault(what, notice)
        counts[what] = counts.get(what, 0) + 1
    grouped = [_counted(notice, counts[what]) for what, notice in first.items()]
    return Message(run, task, _shown(grouped), max(len(grouped) - SHOWN, 0), questions)


def _shown(grouped: Sequence[Notice]) -> tuple[Notice, ...]:
    """Choose at most SHOWN notices. News are left out before alerts. If there are too many alerts, those in the middle
    are left out: the first show how the trouble began, and the last show the present state, such as the end of the
    run."""
    alerts = [notice for notice in grouped if notice.level is AlertLevel.ALERT]
    news = [notice for notice in grouped if notice.level is not AlertLevel.ALERT]
    if len(alerts) > SHOWN:
        return (*alerts[: SHOWN // 2], *alerts[-(SHOWN - SHOWN // 2) :])
    return tuple([*alerts, *news][:SHOWN])


def _counted(notice: Notice, count: int) -> Notice:
    return Notice(notice.id, notice.level, notice.at, notice.agent, notice.text, count)
