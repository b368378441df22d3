"""A request to a model and its answer, in a format that does not depend on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from coral.native.llm.conversation import Message

Json = Mapping[str, Any]
LONGEST_WAIT = 60.0  # seconds: a longer wait that a server asks for ends the launch


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """A tool as the model is shown it. `parameters`: a JSON schema."""

    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One request. `system` never changes within a session, `core` seldom does: a wire that caches prefixes marks the
    ends of both. `answer_tokens`: the longest answer; 0 leaves that to the server, where the wire allows it.
    """

    model: str
    system: str
    core: str = ""
    messages: tuple[Message, ...] = ()
    tools: tuple[ToolSchema, ...] = ()
    effort: str = ""
    temperature: float | None = None
    answer_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RawCall:
    """A call as the model wrote it: `arguments` is a text that should be a JSON object."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Tokens, and US dollars where the server says so. `input` leaves out `cached`."""

    input: int = 0
    cached: int = 0
    output: int = 0
    cost: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer. `cut`: a limit of its length ended it. `refused`: the model or its server refused to answer."""

    text: str = ""
    calls: tuple[RawCall, ...] = ()
    reasoning: tuple[str, ...] = ()
    usage: ModelUsage = ModelUsage()
    cut: bool = False
    refused: bool = False

    @property
    def empty(self) -> bool:
        return not self.text.strip() and not self.calls and not self.refused


class Fault(StrEnum):
    """What an error of the model, or of the connection to it, means for the next request."""

    TRANSIENT = "transient"  # the same request may succeed
    LIMIT = "limit"  # the account has to wait
    REJECTED = "rejected"  # this request will never succeed; a shorter one may
    FATAL = "fatal"  # no request will succeed


class ModelError(Exception):
    """A request failed. `status`: of HTTP, 0 if there was no answer; `retry_after`: seconds, if the server names
    them."""

    def __init__(self, fault: Fault, text: str, *, status: int = 0, retry_after: float | None = None) -> None:
        super().__init__(text)
        self.fault, self.status, self.retry_after = fault, status, retry_after


class StreamReader(Protocol):
    """Puts an answer together from the events of a stream."""

    def feed(self, data: str) -> None:
        """Add the data of one event. ModelError if the event is an error, or cannot be read."""
        ...

    @property
    def usage(self) -> ModelUsage:
        """The use that the server has reported so far."""
        ...

    @property
    def done(self) -> bool:
        """Whether the stream has said that nothing more will come."""
        ...

    def reply(self) -> Reply:
        """Return the whole answer. ModelError if the stream ended before it was whole."""
        ...


class ModelWire(Protocol):
    """A format of requests and answers."""

    @property
    def path(self) -> str:
        """The path of the endpoint below the base URL."""
        ...

    def headers(self, key: str) -> Mapping[str, str]: ...

    def body(self, request: ModelRequest) -> Json: ...

    def reader(self) -> StreamReader: ...

    def adapt(self, request: ModelRequest, problem: str, /) -> bool:
        """Take in why a server has refused a request. Return whether the request has another body from now on."""
        ...


def fault_of(status: int) -> Fault:
    """Return the kind of error that an HTTP status stands for."""
    if status == 429:
        return Fault.LIMIT
    if status in (408, 409, 425) or status >= 500:
        return Fault.TRANSIENT
    return Fault.REJECTED if status in (400, 413, 422) else Fault.FATAL
