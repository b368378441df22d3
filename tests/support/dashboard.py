"""The dashboard: asked in this process, or served by a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import httpx2 as httpx
from starlette.testclient import TestClient

from coral.web.access import CHANGE_HEADER, PageAccess
from coral.web.app import application
from coral.web.runs import Runs
from workspace.layout import Layout

PORT = 7331
BASE = f"http://127.0.0.1:{PORT}"
TOKEN = "a token that is long enough"
ADDRESS = re.compile(r"(http://\S+?)/\?token=(\S+)")


def stranger(layout: Layout) -> TestClient:
    """Return a browser that has not been given the token."""
    return TestClient(application(Runs(layout), PageAccess(PORT, TOKEN)), base_url=BASE, follow_redirects=False)


def visitor(layout: Layout) -> TestClient:
    """Return a browser that opened the first address."""
    client = stranger(layout)
    assert client.get("/", params={"token": TOKEN}).status_code == 303
    return client


def change_headers() -> dict[str, str]:
    return {CHANGE_HEADER: PageAccess(PORT, TOKEN).change}


@dataclass
class Served:
    """A server in a process of its own. `address` opens the page."""

    process: "subprocess.Popen[str]"
    url: str
    token: str

    @property
    def address(self) -> str:
        return f"{self.url}/?token={quote(self.token)}"

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """Yield a client that has been given the token."""
        with httpx.Client(base_url=self.url, timeout=30) as client:
            assert client.get("/", params={"token": self.token}).status_code == 303
            yield client


@contextmanager
def serving(layout: Layout, *words: str, port: int = 0, **env: str) -> Iterator[Served]:
    """`coral ui` at a free port, until the test is over."""
    command = [sys.executable, "-P", "-m", "coral", "ui", "--run", str(layout.root), "--port", str(port), *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CORAL_")}
    process = subprocess.Popen(
        command, env={**environment, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path("/")
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        found = ADDRESS.search(process.stdout.readline())
        assert found, process.stderr.read()
        yield Served(process, found[1], unquote(found[2]))
    finally:
        process.terminate()
        process.communicate(timeout=120)


@contextmanager
def live_messages(client: httpx.Client, run: str) -> Iterator[Iterator[tuple[str, str]]]:
    """Yield what the server tells an open page: (kind, JSON), as it comes."""
    with client.stream("GET", f"/api/runs/{run}/live") as answer:
        assert answer.status_code == 200
        yield _parsed(answer.iter_lines())


def _parsed(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    kind = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, value
