"""The options of the brain `llm`, from `agents.options` of a task. Unknown or wrong ones are refused."""

import os
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

DEFAULTS = {
    "chat": ("OPENAI_BASE_URL", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "messages": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}


class LlmOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    brain: Literal["llm"] = "llm"
    wire: Literal["chat", "messages"] = Field(
        "chat", description="The format of requests: chat completions or messages."
    )
    base_url: str = Field("", description="Where the server is; default: of the environment, else of the wire's maker.")
    key_variable: str = Field("", description="The environment variable that holds the key; default: the wire's own.")
    calls: Literal["native", "text"] = Field("native", description="text: for models that have no tools of their own.")
    effort: str = Field("", description="How much the model reasons, in its own words; empty leaves it out.")
    temperature: float | None = Field(None, ge=0, le=2, description="Left out by default: some models take none.")
    window: int = Field(128_000, ge=16_000, description="Tokens of the model's context window.")
    answer_tokens: int = Field(0, ge=0, description="The longest answer; 0 leaves it to the server, or is 16000.")
    answer_seconds: float = Field(600.0, ge=0.05, le=86_400, description="For one whole answer.")
    summary_model: str = Field("", description="A cheaper model that writes the summaries; default: the model.")
    persona: str = Field("", max_length=2000, description="Who the agent is: the first text of its block persona.")
    max_steps: int = Field(10, ge=1, le=1000, description="Steps in a row without a word to the outer loop.")
    steps: int = Field(400, ge=1, description="Steps that one launch may make.")
    steps_per_attempt: int = Field(0, ge=0, description="A gate: steps before it has to submit; 0 is no limit.")
    tokens_per_attempt: int = Field(0, ge=0, description="A gate: tokens before it has to submit; 0 is no limit.")
    money_per_attempt: float = Field(0.0, ge=0, description="A gate: US dollars, where the server says the price.")
    check_first: bool = Field(False, description="A gate: nothing is submitted before the check passes.")
    network: bool = Field(False, description="Whether its commands may use programs that need the network.")
    run_seconds: float = Field(300.0, ge=0.1, le=86_400, description="The longest time of one command.")
    gates: tuple[str, ...] = Field((), description="Own gates, as module:function.")
    tools: tuple[str, ...] = Field((), description="Own tools, as module:Class.")

    @classmethod
    def read(cls, data: object) -> "LlmOptions":
        """ValueError says what is wrong."""
        if not isinstance(data, Mapping):
            raise ValueError("the options must be an object")
        if unknown := sorted(str(name) for name in data if name not in cls.model_fields):
            raise ValueError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(cls.model_fields))}")
        plain = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
        try:
            return cls.model_validate(plain)
        except ValidationError as problem:
            first = problem.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ValueError(f"{place}: {first['msg']}; got {first['input']!r}") from None

    @property
    def key_name(self) -> str:
        return self.key_variable or DEFAULTS[self.wire][2]

    @property
    def key_names(self) -> frozenset[str]:
        """The variables that its commands do not get."""
        return frozenset((self.key_name, *(name for _, _, name in DEFAULTS.values())))

    @property
    def url(self) -> str:
        variable, default, _ = DEFAULTS[self.wire]
        return self.base_url or os.environ.get(variable) or default
