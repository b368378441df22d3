"""Makes one request to a model, streamed: returns a whole answer, or raises a `ModelError` that says whether another
request may succeed.

There are two limits of time: for silence, and for the whole answer, since a server that sends a byte a minute is never
silent.
"""

import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse

from coral.native.llm.model_errors import error_text
from coral.native.llm.post import Limits, UnusableRequestError, post
from coral.native.llm.request import (
    Fault,
    Json,
    ModelError,
    ModelRequest,
    ModelUsage,
    ModelWire,
    Reply,
    StreamReader,
    fault_of,
)

SILENCE_SECONDS = 180.0  # models that reason say nothing for a while
LONGEST_ANSWER = 20_000_000  # bytes
LONGEST_ERROR = 20_000  # bytes
PIECE = 65_536  # bytes that are read at once, at most
DATA = re.compile(rb"(?:data|error): ?")  # llama.cpp has a field `error`
FIELD = re.compile(rb"\w*:")  # of a stream, or a comment in it


@dataclass(slots=True)
class ModelClient:
    """Asks one server. `answer_seconds`: the limit for one whole answer. `alive` is called for each piece of an answer,
    `spend` with what each request has used, whatever came of it.

    `reading`: the answer that is being read; the handler of an interrupt reads its usage.
    """

    wire: ModelWire
    base_url: str
    key: str
    answer_seconds: float = 600.0
    alive: Callable[[], None] = lambda: None
    spend: Callable[[ModelUsage], None] = lambda _: None
    reading: StreamReader | None = None

    def ask(self, request: ModelRequest) -> Reply:
        """Return a whole answer. ModelError if there is none; a request that a server refuses for its form is made
        again at once in another."""
        while True:
            try:
                return self._ask(request)
            except ModelError as problem:
                if not self.wire.adapt(request, str(problem)):
                    raise

    def _ask(self, request: ModelRequest) -> Reply:
        limits = Limits(SILENCE_SECONDS, time.monotonic() + self.answer_seconds)
        self.reading = reader = self.wire.reader()
        body = _encoded(self.wire.body(request))
        headers = {"content-type": "application/json", **self.wire.headers(self.key)}
        try:
            with post(self._url(), headers, body, limits) as response:
                if response.status != 200:
                    raise self._refusal(response, limits)
                for data in event_data(self._pieces(response, limits)):
                    reader.feed(data)
                    if reader.done:  # some servers leave the connection open, or reset it
                        break
            return reader.reply()
        except (OSError, HTTPException) as error:
            raise self._broken(error, limits) from None
        except UnusableRequestError as problem:
            raise ModelError(Fault.FATAL, f"cannot ask the model: {problem}") from None
        finally:
            self.reading = None
            if reader.usage != ModelUsage():
                self.spend(reader.usage)

    def _url(self) -> str:
        base, mark, query = self.base_url.partition("?")
        base, version = base.rstrip("/"), "/v1"
        if self.wire.path.startswith(f"{version}/"):  # many write it at the end of the base, too
            base = base.removesuffix(version)
        return base + self.wire.path + mark + query

    def _broken(self, error: OSError | HTTPException, limits: Limits) -> ModelError:
        if limits.over:
            return self._too_slow()
        if isinstance(error, TimeoutError):
            return ModelError(Fault.TRANSIENT, "the model's server was silent for too long")
        if isinstance(error, ssl.SSLCertVerificationError):
            text = f"the server's certificate cannot be trusted: {error.verify_message}; SSL_CERT_FILE names others"
            return ModelError(Fault.FATAL, text)
        return ModelError(Fault.TRANSIENT, f"cannot reach the model: {error or type(error).__name__}")

    def _too_slow(self) -> ModelError:
        return ModelError(Fault.TRANSIENT, f"no whole answer came within {self.answer_seconds:g} seconds")

    def _pieces(self, response: HTTPResponse, limits: Limits) -> Iterator[bytes]:
        size = 0
        while piece := response.read1(PIECE):
            size += len(piece)
            if size > LONGEST_ANSWER:
                raise ModelError(Fault.TRANSIENT, "the answer is longer than any answer can be")
            self.alive()
            yield piece
        if limits.over:  # the connection was broken from here
            raise self._too_slow()

    def _refusal(self, response: HTTPResponse, limits: Limits) -> ModelError:
        raw = b""
        for piece in self._pieces(response, limits):
            raw += piece
            if len(raw) > LONGEST_ERROR:
                break
        text = error_text(raw[:LONGEST_ERROR].decode("utf-8", "replace"))
        wait = retry_after(response.headers.get("retry-after", ""), time.time())
        return ModelError(
            fault_of(response.status), text or f"HTTP {response.status}", status=response.status, retry_after=wait
        )


def _encoded(body: Json) -> bytes:
    """Return a body as JSON. Half a character, as in an answer that was cut off within an emoji, is replaced: servers
    refuse it."""
    text = json.dumps(body, ensure_ascii=False)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def event_data(pieces: Iterator[bytes]) -> Iterator[str]:
    """Yield the data of the events of a stream. An event that does not end in an empty line is not whole, and left
    out. A body that is no stream, as of a gateway's error, is one event."""
    rest, lines, body, streamed = b"", list[str](), list[bytes](), False
    for piece in pieces:
        *whole, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in whole:
            if found := DATA.match(line):
                data = line[found.end() :].decode("utf-8", "replace")
                lines.append(f'{{"error": {data}}}' if line.startswith(b"error") else data)
            elif not line.strip() and lines:
                yield "\n".join(lines)
                lines, streamed = [], True
            elif not FIELD.match(line):
                body.append(line)
    text = b"\n".join([*body, rest]).strip()
    if text and not streamed and not FIELD.match(text):
        yield text.decode("utf-8", "replace")


def retry_after(value: str, now: float) -> float | None:
    """Return the seconds that a header Retry-After names, in either of its forms; None if it cannot be read."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return max(0.0, seconds) if seconds == seconds and seconds < 1e9 else None
