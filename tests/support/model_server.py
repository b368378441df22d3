"""A model on loopback that says what a test wrote down, and remembers everything it was asked.

Each request that offers a shell takes the next step, except what a program asks for itself (titles, summaries).
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from model_wires import WIRES, Step, Wire

__all__ = ["Asked", "ModelServer", "Step"]

# What programs ask for themselves although they offer their tools.
ASIDES = ("followed by a <summary> block", "<overview>", "Managed memory has TWO directories")
CLOSING = "I have nothing more to do."  # said when the script is at its end


@dataclass(frozen=True, slots=True)
class Asked:
    """A request. `step`: what it was answered with, None for an aside."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at: float
    step: Step | None
    texts: tuple[str, ...]

    def has(self, *marks: str) -> bool:
        """Return whether its conversation holds these texts, in this order."""
        whole, place = "\n".join(self.texts), 0
        for mark in marks:
            found = whole.find(mark, place)
            if found < 0:
                return False
            place = found + len(mark)
        return True


Script = Sequence[Step] | Callable[[Asked], Step]


class ModelServer:
    """`script`: the steps, in order; or a function that is asked for each. `refuses`: until `listen` is called."""

    def __init__(self, script: Script = (), *, refuses: bool = False) -> None:
        self._choose = script if callable(script) else None
        self._steps = [] if callable(script) else [step for step in script for _ in range(step.times)]
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.asked: list[Asked] = []
        self.strange: list[str] = []  # requests that nobody here knows
        self._begun: set[int] = set()  # the requests whose answer's first piece is out
        self.streamed = 0  # answers that went on until their script hung or cut them
        server = self

        class Handler(_Handler):
            model = server

        self._http = _Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._http.server_bind()  # nobody else gets the port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)
        self._refuses = refuses

    def __enter__(self) -> "ModelServer":
        if not self._refuses:
            self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.server_close()

    def listen(self) -> None:
        self._http.server_activate()
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def turns(self) -> list[Asked]:
        """The requests that took a step."""
        return [call for call in list(self.asked) if call.step is not None]

    @property
    def begun(self) -> int:
        """How many of those see the beginning of their answer."""
        return len([number for number in list(self._begun) if self.asked[number - 1].step is not None])

    def begins(self, number: int) -> None:
        self._begun.add(number)

    def then(self, *steps: Step) -> None:
        """Go on with these, whatever was planned."""
        with self._lock:
            self._choose = None
            self._steps = [step for given in steps for step in [given] * given.times]

    def take(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any], wire: Wire) -> tuple[Step, int]:
        """Return the answer to a request, and its number."""
        texts = tuple(_texts(body.get(wire.conversation)))
        textual = "<call name=" in f"{body.get('system')}{texts[:2]}"  # calls as text need no tools
        aside = not (wire.shell(body) or textual) or any(mark in text for mark in ASIDES for text in texts[-1:])
        asked = Asked(path, headers, body, time.monotonic(), None, texts)
        with self._lock:
            if aside:  # it costs nothing: what a script's steps cost is all that is used
                words = "A summary of what was done." if wire.shell(body) else '{"title": "a title"}'
                step = Step(say=words, usage=(0, 0, 0))
            elif self._choose is not None:
                step = self._choose(asked)
            else:
                step = self._steps.pop(0) if self._steps else Step(say=CLOSING)
            self.asked.append(Asked(path, headers, body, asked.at, None if aside else step, texts))
            return step, len(self.asked)

    def wait(self, seconds: float) -> bool:
        """Wait; True when the server is to end meanwhile."""
        return self._closing.wait(seconds)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a program that hangs up: that is no error of ours."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def do_HEAD(self) -> None:
        self._whole(200, {}, {})

    def do_GET(self) -> None:
        if urlsplit(self.path).path.endswith("/models"):
            self._whole(200, {"object": "list", "data": [{"id": "mock-model", "object": "model"}]}, {})
        else:
            self._unknown()

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = urlsplit(self.path).path
        if path.endswith("/count_tokens"):
            self._whole(200, {"input_tokens": 10}, {})
        elif path.endswith(":countTokens"):
            self._whole(200, {"totalTokens": 10}, {})
        elif wire := next((wire for end, wire in WIRES.items() if path.endswith(end)), None):
            body = json.loads(raw)
            step, number = self.model.take(path, dict(self.headers.items()), body, wire)
            self._answer(step, number, body, wire)
        else:
            self._unknown()

    def _answer(self, step: Step, number: int, body: Mapping[str, Any], wire: Wire) -> None:
        if step.before and self.model.wait(step.before):
            return
        if step.status != 200:
            self._whole(step.status, step.body or wire.error(step), step.headers)
            return
        streams = body.get("stream") or self.path.split("?")[0].endswith(":streamGenerateContent")
        whole = None if streams else wire.whole(step, number, body)
        if whole is not None:
            self._whole(200, whole, step.headers)
        else:
            self._stream(step, number, wire.pieces(step, number, body) if step.raw is None else iter([step.raw]))

    def _stream(self, step: Step, asked: int, pieces: Iterator[bytes]) -> None:
        self.send_response(200)
        for name, value in {"content-type": "text/event-stream", "transfer-encoding": "chunked"}.items():
            self.send_header(name, value)
        for name, value in step.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for number, piece in enumerate(pieces):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            self.model.begins(asked)
            if number == 2 and (step.cut or step.hang):
                self.model.streamed += 1
                self.close_connection = True
                if step.cut or self.model.wait(3600):
                    return
            if self.model.wait(step.between):
                return
        self.wfile.write(b"0\r\n\r\n")

    def _whole(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-type": "application/json", "content-length": str(len(raw)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def _unknown(self) -> None:
        self.model.strange.append(f"{self.command} {self.path}")
        self._whole(404, {"error": {"message": "there is no such thing here"}}, {})

    def log_message(self, format: str, *args: object) -> None:
        pass


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a conversation, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)
