"""The section `agents` of task.yaml: who works, what drives them, and what holds for all of them."""

from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from coral.config.section import DAY, Grace, Options, Seconds, Section, Text

MAX_AGENTS = 1000
Minutes = Annotated[float, Field(gt=0, le=1440, allow_inf_nan=False)]
Dollars = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class PricesSection(Section):
    """What a model costs, in US dollars for a million tokens. What a program tells itself goes before it."""

    input: Dollars = Field(description="What the model reads.")
    output: Dollars = Field(description="What the model writes.")
    cached: Dollars | None = Field(default=None, description="What it reads from a cache. Empty: as input.")


class Assignment(Section):
    """Agents that are driven alike."""

    count: int = Field(default=1, ge=1, le=MAX_AGENTS, description="How many agents work on the task.")
    runtime: Text = Field(
        default="native", description="The program that drives them: a name of docs/runtimes.md, or module.path:object."
    )
    model: str = Field(default="", description="The model the program uses. Empty: the program's own default.")
    options: Options = Field(default_factory=dict, description="Options of the runtime itself.")
    role: str = Field(
        default="", description="What these agents are told besides, in their instructions: their part in the fleet."
    )
    role_file: str = Field(
        default="", description="The same as a text file, relative to the task's folder; it is read when a run starts."
    )
    mounts: dict[Text, Text] = Field(
        default_factory=dict,
        description="Files and folders of this machine that the agents find in their workspace: a path there, and the "
        "path it leads to, relative to the task's folder. No part of what they submit.",
    )
    research: Minutes | None = Field(
        default=None,
        description="For so many minutes at first, or until they end their turn, the agents read, think and write "
        "notes; nothing they submit is graded.",
    )
    account: str = Field(
        default="",
        description="Whose usage the agents spend: when it is used up, all of them pause until it is there again. "
        "Empty: that of the program's own login; agents that ask no model spend none.",
    )
    prices: PricesSection | None = Field(
        default=None,
        description="What the model costs, where the program tells tokens only. Empty: as the package genai-prices "
        "knows it, if that is installed.",
    )


class AgentsSection(Assignment):
    """Who works."""

    assignments: Annotated[tuple[Assignment, ...], Strict(False)] = Field(
        default=(),
        description="A mixed fleet: a list of parts, each with a runtime, a count, a model, ... of its own. "
        "What stands there does not stand here.",
    )
    on_limit: Literal["park", "stop"] = Field(
        default="park", description="At a usage limit: park the agents until the provider's reset, or stop the run."
    )
    stagger: Grace = Field(default=0.05, description="Seconds between the starts of two agents.")
    stall: Seconds = Field(default=1200.0, description="Seconds of silence after which an agent is interrupted.")
    no_progress: Annotated[float, Field(ge=0, le=30 * DAY, allow_inf_nan=False)] | None = Field(
        default=7200.0,
        description="Seconds of work without an edited file or a submission after which an agent is nudged, then "
        "interrupted, given a fresh session, and parked. 0 or null: never.",
    )
    outage: Seconds = Field(
        default=900.0,
        description="Seconds in which an agent's program does nothing but ask its model again, after which it is "
        "ended and waits as after a crash.",
    )
    retries: int = Field(
        default=30, ge=1, le=1_000_000, description="The same after so many retries in a row, where they are told."
    )

    @model_validator(mode="after")
    def _says_each_thing_once(self) -> Self:
        if self.assignments:
            fields = Assignment.model_fields.items()
            twice = [
                name for name, field in fields if getattr(self, name) != field.get_default(call_default_factory=True)
            ]
            if twice:
                raise ValueError(f"has both assignments and {', '.join(twice)}: say those in each assignment")
            if sum(each.count for each in self.assignments) > MAX_AGENTS:
                raise ValueError(f"has more than {MAX_AGENTS} agents in its assignments")
        return self


Count = Annotated[int, Field(ge=1, le=10**15)]


class FreshAfterSection(Section):
    """How worn a conversation is when an agent's next launch begins a new one. What is not given does not count."""

    compactions: Count | None = Field(default=None, description="It was compacted so often.")
    tokens: Count | None = Field(
        default=None, description="It has used so many tokens, without those that were read from a cache."
    )


class SessionSection(Section):
    """How long agents go on with one conversation."""

    fresh_after: FreshAfterSection = Field(
        default_factory=FreshAfterSection,
        description="When the next launch begins a new conversation, which is handed the story so far. "
        "Nobody is interrupted for it.",
    )
