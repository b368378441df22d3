"""The section `alerts` of task.yaml: who is told of what, and when."""

import re
from typing import Annotated, Literal

from pydantic import Strict, field_validator

from coral.config.section import Seconds, Section, Texts, key

QUIET_HOURS = re.compile(r"([01]?[0-9]|2[0-3]):[0-5][0-9]-([01]?[0-9]|2[0-3]):[0-5][0-9]")


class AlertRoute(Section):
    """A destination of alerts, with what it is told and when."""

    to: Texts = key(
        "Where messages go: the address of a webhook, `desktop`, an address that the package apprise knows, env:NAME "
        "for one in an environment variable.",
        (),
    )
    program: Texts = key("A program and its arguments: it gets each message as JSON on its standard input.", ())
    level: Literal["alert", "news"] = key(
        "alert: what needs a person, and the end of the run. news: new bests as well.", "alert"
    )
    digest: Seconds = key("Seconds between two messages; what comes in between is one message.", 60.0)
    quiet_hours: str = key("Hours in which nothing is sent, by this machine's clock, such as 22:00-07:00.", "")
    secret: str = key(
        "The name of an environment variable by whose value messages to webhooks are signed (X-Coral-Signature).", ""
    )

    @field_validator("quiet_hours")
    @classmethod
    def _are_hours(cls, text: str) -> str:
        if text and not QUIET_HOURS.fullmatch(text):
            raise ValueError("are no hours of a day: write 22:00-07:00")
        return text

    @property
    def destinations(self) -> tuple[str | tuple[str, ...], ...]:
        return (*self.to, *((self.program,) if self.program else ()))


class AlertsSection(AlertRoute):
    """How alerts reach people who do not watch the run. They are always in `coral status` and in the timeline."""

    routes: Annotated[tuple[AlertRoute, ...], Strict(False)] = key(
        "Several routes, each with its own level, digest and quiet hours.", ()
    )

    @property
    def all_routes(self) -> tuple[AlertRoute, ...]:
        return (self, *self.routes)
