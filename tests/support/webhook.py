"""A receiver of messages on loopback, which answers as a test wants."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Webhook:
    """`status`: what it answers, with these `headers`; `hangs`: it reads and never answers."""

    def __init__(self) -> None:
        self.status, self.headers, self.hangs = 200, dict[str, str](), threading.Event()
        self.received: list[tuple[dict[str, str], bytes]] = []
        self._over = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.received.append((dict(self.headers), body))
                if hook.hangs.is_set():
                    hook._over.wait()
                self.send_response(hook.status)
                for name, value in hook.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook/secret"

    @property
    def ids(self) -> list[str]:
        """The ids of everything received, in order."""
        return [alert["id"] for message in self.messages for alert in message["alerts"]]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in list(self.received)]

    def serve(self) -> None:
        self._server.serve_forever(0.05)

    def close(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def webhook() -> Iterator[Webhook]:
    hook = Webhook()
    thread = threading.Thread(target=hook.serve)
    thread.start()
    try:
        yield hook
    finally:
        hook.close()
        thread.join()
