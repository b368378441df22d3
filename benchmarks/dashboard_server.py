"""Runs `coral ui`, and stands in for open pages without a browser: by threads that ask for what a page asks for."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

import psutil

from attempts.record import IMPROVED
from benchmarks.arena import Arena, BenchmarkError, Started

END_SECONDS = 10.0
SILENT_SECONDS = 9.0  # the server sends something every three seconds
RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running `coral ui`. `address`: opens the dashboard of `run`, with the token in it."""

    process: psutil.Process
    run: str
    address: str

    def memory(self) -> float:
        """Return the memory of the server in MB: its proportional share (PSS), or RSS on a system that has no PSS."""
        found = self.process.memory_full_info()
        return float(getattr(found, "pss", found.rss)) / 1e6


@contextmanager
def serving(place: Arena, run: Started) -> Iterator[Server]:
    words = ("ui", "--run", str(run.layout.root), "--port", "0", "--json", "--until-input-ends")
    with place.beside(*words) as child:
        assert child.stdout is not None
        line = child.stdout.readline()
        if not line:
            raise BenchmarkError("coral ui has ended")
        said = json.loads(line)
        yield Server(psutil.Process(child.pid), said["run"], said["address"])


class StreamTab(threading.Thread):
    """Reads the live events of a run as an open page does: makes a new connection where one ends, and asks for the
    curve after each improvement. `points`: when each attempt came, in nanoseconds."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self.points: dict[int, int] = {}
        self.connections = 0
        self._path = f"/api/runs/{quote(server.run)}"
        self._address = urlsplit(server.address)
        self._closed = threading.Event()

    def close(self) -> None:
        self._closed.set()

    def run(self) -> None:
        while not self._closed.is_set():
            try:
                self._follow()
            except (OSError, http.client.HTTPException):
                self._closed.wait(RETRY_SECONDS)

    def _follow(self) -> None:
        stream, curve = (http.client.HTTPConnection(self._address.netloc, timeout=SILENT_SECONDS) for _ in range(2))
        try:
            headers = {"Cookie": self._cookie(stream)}
            stream.request("GET", f"{self._path}/live", headers=headers)
            answer = stream.getresponse()
            self.connections += 1
            kind = ""
            while not self._closed.is_set() and (line := answer.readline()):
                name, _, value = line.decode().strip().partition(": ")
                kind = value if name == "event" else kind
                if name == "data" and kind == "point":
                    point = json.loads(value)
                    self.points.setdefault(point["number"], time.time_ns())
                    if point["verdict"] in IMPROVED:
                        curve.request("GET", f"{self._path}/curve", headers=headers)
                        curve.getresponse().read()
        finally:
            stream.close()
            curve.close()

    def _cookie(self, connection: http.client.HTTPConnection) -> str:
        connection.request("GET", f"/?{self._address.query}")
        answer = connection.getresponse()
        answer.read()
        return (answer.getheader("set-cookie") or "").partition(";")[0]


@contextmanager
def stream_tabs(server: Server, count: int) -> Iterator[list[StreamTab]]:
    tabs = [StreamTab(server) for _ in range(count)]
    try:
        for tab in tabs:
            tab.start()
        yield tabs
    finally:
        for tab in tabs:
            tab.close()
        for tab in tabs:
            tab.join(SILENT_SECONDS + RETRY_SECONDS)
