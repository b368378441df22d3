"""Makes one request to a model, streamed: returns a whole answer, or raises a `ModelError` that says whether another
request may succeed.

There are two limits of time: for silence, and for the whole answer, since a server that sends a byte a minute is never
silent.
"""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import httpx2

from coral.native.llm.request import Fault, ModelError, ModelRequest, ModelWire, Reply, StreamReader, fault_of

CONNECT_SECONDS = 15.0
SILENCE_SECONDS = 180.0  # models that reason say nothing for a while
LONGEST_ANSWER = 20_000_000  # bytes
LONGEST_ERROR = 20_000  # bytes


@dataclass(slots=True)
class ModelClient:
    """Asks one server. `answer_seconds`: the limit for one whole answer. `alive` is called for each piece of an answer.

    `reading`: the answer that is being read; the handler of an interrupt reads its usage.
    """

    wire: ModelWire
    base_url: str
    key: str
    answer_seconds: float = 600.0
    alive: Callable[[], None] = lambda: None
    reading: StreamReader | None = None
    _http: "httpx2.Client | None" = field(default=None, repr=False)

    def ask(self, request: ModelRequest) -> Reply:
        began = time.monotonic()
        self.reading = reader = self.wire.reader()
        try:
            with self._client().stream(
                "POST",
                self.base_url.rstrip("/") + self.wire.path,
                content=json.dumps(self.wire.body(request)).encode("utf-8", "replace"),
                headers={"content-type": "application/json", **self.wire.headers(self.key)},
            ) as response:
                if response.status_code != 200:
                    raise self._refusal(response, began)
                for data in event_data(self._pieces(response, began)):
                    reader.feed(data)
            return reader.reply()
        except httpx2.TimeoutException:
            raise ModelError(Fault.TRANSIENT, "the model's server was silent for too long") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            raise ModelError(Fault.TRANSIENT, f"cannot reach the model: {error or type(error).__name__}") from None
        finally:
            self.reading = None

    def close(self) -> None:
        if self._http is not None:
            self._http.close()

    def _client(self) -> httpx2.Client:
        if self._http is None:
            times = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
            times.read = min(SILENCE_SECONDS, self.answer_seconds)
            # Without TLS nothing is verified, and loading the certificates takes longer than all else.
            secure = not self.base_url.startswith("http://")
            self._http = httpx2.Client(timeout=times, verify=secure)
        return self._http

    def _pieces(self, response: httpx2.Response, began: float) -> Iterator[bytes]:
        size = 0
        for piece in response.iter_bytes():
            size += len(piece)
            if time.monotonic() - began > self.answer_seconds:
                raise ModelError(Fault.TRANSIENT, f"no whole answer came within {self.answer_seconds:g} seconds")
            if size > LONGEST_ANSWER:
                raise ModelError(Fault.TRANSIENT, "the answer is longer than any answer can be")
            self.alive()
            yield piece

    def _refusal(self, response: httpx2.Response, began: float) -> ModelError:
        raw = b""
        for piece in self._pieces(response, began):
            raw += piece
            if len(raw) > LONGEST_ERROR:
                break
        text = error_text(raw[:LONGEST_ERROR].decode("utf-8", "replace"))
        status = response.status_code
        wait = retry_after(response.headers.get("retry-after", ""), time.time())
        return ModelError(fault_of(status), text or f"HTTP {status}", status=status, retry_after=wait)


def event_data(pieces: Iterator[bytes]) -> Iterator[str]:
    """Yield the data of the events of a stream. An event that does not end in an empty line is not whole, and left
    out."""
    rest, lines = b"", list[str]()
    for piece in pieces:
        *whole, rest = (rest + piece).replace(b"\r\n", b"\n").split(b"\n")
        for line in whole:
            if line.startswith(b"data:"):
                lines.append(line[5:].decode("utf-8", "replace").removeprefix(" "))
            elif not line.strip() and lines:
                yield "\n".join(lines)
                lines = []


def error_text(body: str) -> str:
    """Return the error in the body of a refused request: its type, its code and its message."""
    try:
        error = json.loads(body)
    except (ValueError, RecursionError):
        return " ".join(body.split())[:500]
    error = error.get("error", error) if isinstance(error, dict) else error
    if not isinstance(error, dict):
        return str(error)[:500]
    words = [str(error[name]) for name in ("type", "code", "message") if isinstance(error.get(name), str | int)]
    return " ".join(dict.fromkeys(words))[:2000]


def retry_after(value: str, now: float) -> float | None:
    """Return the seconds that a header Retry-After names, in either of its forms; None if it cannot be read."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - now
        except ValueError:
            return None
    return max(0.0, seconds) if seconds == seconds and seconds < 1e9 else None
