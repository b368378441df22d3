"""The memory of the agent `llm` between launches: its blocks, the conversation as far as it is in view, its counters.

A memory is a value, as that of the other brain: every change makes a new one, so whatever is saved is whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

BLOCKS = {"persona": 2000, "task": 3000, "plan": 3000, "learned": 4000}  # characters that each may hold
REMEMBERED_FAILURES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call as the model wrote it: its arguments are a text, which need not be JSON. The id is ours, and unique."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """A message of the outer loop: the prompt of a launch, a heartbeat, or what a person typed."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMessage:
    """An answer of the model. `reasoning`: what the server wants back unchanged, as JSON texts."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    reasoning: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultMessage:
    """The result of a call. `chains`: whether the next step follows at once."""

    call: str
    name: str
    text: str
    failed: bool = False
    chains: bool = False


Message = PromptMessage | AnswerMessage | ResultMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """A call that a gate holds back: it is offered to the gates again before each of the next `steps`."""

    call: ToolCall
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmMemory:
    """The memory of one session. `message_count`: messages since the session began, also those that are out of view.
    `started`: the id of the call that is being performed. `submitted_before`: the last submission before the one that
    is being made, empty if there was none; None if none is being made. `chain`: steps in a row since the last prompt.
    `failures`: the last calls that failed while no file was changed, as name and arguments. `attempts`: the commits of
    its own attempts, by number. `checked`: whether the check has passed since the last change. `steps`, `tokens`,
    `cost`: since the last attempt."""

    session: str
    blocks: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""
    waiting: tuple[str, ...] = ()  # prompts that are added with the next one, or once an interrupt is settled
    messages: tuple[Message, ...] = ()
    message_count: int = 0
    started: str = ""
    submitted_before: str | None = None
    held: tuple[HeldCall, ...] = ()
    chain: int = 0
    failures: tuple[str, ...] = ()
    attempts: Mapping[str, str] = field(default_factory=dict)
    checked: bool = False
    steps: int = 0
    tokens: int = 0
    cost: float = 0.0

    @property
    def commits(self) -> Mapping[int, str]:
        return {int(number): commit for number, commit in self.attempts.items()}

    def without_attempts(self) -> Self:
        return replace(self, attempts={})

    @property
    def last_answer(self) -> AnswerMessage | None:
        answers = (message for message in reversed(self.messages) if isinstance(message, AnswerMessage))
        return next(answers, None)

    @property
    def last_answer_number(self) -> int:
        """The number of the last answer among all messages, from 1; of the next message if there is none."""
        later = [isinstance(message, AnswerMessage) for message in reversed(self.messages)]
        return self.message_count - later.index(True) if True in later else self.message_count + 1

    @property
    def last_results(self) -> tuple[ResultMessage, ...]:
        """The results of the last answer's calls that there are so far."""
        answer = self.last_answer
        ids = {call.id for call in answer.calls} if answer else set[str]()
        return tuple(message for message in self.messages if isinstance(message, ResultMessage) and message.call in ids)

    @property
    def unfinished(self) -> tuple[ToolCall, ...]:
        """The calls of the last answer that have no result."""
        answer, done = self.last_answer, {result.call for result in self.last_results}
        return tuple(call for call in (answer.calls if answer else ()) if call.id not in done)

    def add(self, message: Message) -> Self:
        return replace(self, messages=(*self.messages, message), message_count=self.message_count + 1)

    def prompt(self, text: str) -> Self:
        """Add a prompt; the count of steps in a row begins at zero again."""
        return replace(self.add(PromptMessage(text=text)), chain=0)

    def answer(self, message: AnswerMessage) -> Self:
        return replace(self, chain=self.chain + 1, steps=self.steps + 1).add(message)

    def spend(self, tokens: int, cost: float) -> Self:
        return replace(self, tokens=self.tokens + tokens, cost=self.cost + cost)

    def finish(self, call: ToolCall, message: Message, *, failed: bool, changed: bool = False) -> Self:
        """Add the message with the result of a call. `failed`: it was performed in vain. If it `changed` a file of the
        workspace, the calls that failed before may succeed now, so they are forgotten."""
        failures = () if changed else self.failures
        if failed:
            failures = (*failures, f"{call.name} {call.arguments}")[-REMEMBERED_FAILURES:]
        return replace(self.add(message), started="", submitted_before=None, failures=failures)

    def new_attempt(self, number: int, commit: str) -> Self:
        attempts = {**self.attempts, str(number): commit}
        return replace(self, attempts=attempts, steps=0, tokens=0, cost=0.0, failures=(), checked=False)

    def edit(self, block: str, text: str) -> Self:
        return replace(self, blocks={**self.blocks, block: text})
