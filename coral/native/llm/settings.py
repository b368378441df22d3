"""The options of the brain `llm`, from `agents.options` of a task. Unknown or wrong ones are refused."""

import os
from dataclasses import dataclass

from coral.native.option_fields import option, read_options

DEFAULTS = {
    "chat": ("OPENAI_BASE_URL", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    "messages": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
}
DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmOptions:
    brain: str = option("llm", among=["llm"])
    wire: str = option("chat", "The format of requests: chat completions or messages.", among=["chat", "messages"])
    base_url: str = option("", "Where the server is; default: of the environment, else of the wire's maker.")
    key_variable: str = option("", "The environment variable that holds the key; default: the wire's own.")
    calls: str = option("native", "text: for models that have no tools of their own.", among=["native", "text"])
    effort: str = option("", "How much the model reasons, in its own words; empty leaves it out.")
    temperature: float | None = option(None, "Left out by default: some models take none.", least=0, most=2)
    window: int = option(128_000, "Tokens of the model's context window.", least=16_000)
    answer_tokens: int = option(0, "The longest answer; 0 leaves it to the server, or is 16000.", least=0)
    answer_seconds: float = option(600.0, "For one whole answer.", least=0.05, most=DAY)
    summary_model: str = option("", "A cheaper model that writes the summaries; default: the model.")
    persona: str = option("", "Who the agent is: the first text of its block persona.", most=2000)
    max_steps: int = option(10, "Steps in a row without a word to the outer loop.", least=1, most=1000)
    steps: int = option(400, "Steps that one launch may make.", least=1)
    steps_per_attempt: int = option(0, "A gate: steps before it has to submit; 0 is no limit.", least=0)
    tokens_per_attempt: int = option(0, "A gate: tokens before it has to submit; 0 is no limit.", least=0)
    money_per_attempt: float = option(0.0, "A gate: US dollars, where the server says the price.", least=0)
    check_first: bool = option(False, "A gate: nothing is submitted before the check passes.")
    network: bool = option(False, "Whether its commands may use programs that need the network.")
    run_seconds: float = option(300.0, "The longest time of one command.", least=0.1, most=DAY)
    gates: tuple[str, ...] = option((), "Own gates, as module:function.")
    tools: tuple[str, ...] = option((), "Own tools, as module:Class.")

    @classmethod
    def read(cls, data: object) -> "LlmOptions":
        """Read the options. ValueError says what is wrong."""
        return read_options(cls, data)

    @property
    def key_name(self) -> str:
        return self.key_variable or DEFAULTS[self.wire][2]

    @property
    def key_names(self) -> frozenset[str]:
        """The environment variables with keys, which the agent's commands do not get."""
        return frozenset((self.key_name, *(name for _, _, name in DEFAULTS.values())))

    @property
    def url(self) -> str:
        variable, default, _ = DEFAULTS[self.wire]
        return self.base_url or os.environ.get(variable) or default
