"""Serves the dashboard of a run until it is interrupted: binds a port, then prints the address that opens the page."""

import os
import socket
import threading
from typing import TextIO
from urllib.parse import quote

import uvicorn

from coral.errors import CoralError
from coral.web.access import LEAST_TOKEN, PageAccess, is_loopback
from coral.web.app import application
from coral.web.runs import Runs
from workspace.layout import Layout

PORT = 7331
TOKEN = "CORAL_UI_TOKEN"  # the variable for a fixed token, with which open pages survive a restart of the server
BACKLOG = 128
SHUTDOWN_SECONDS = 2


def bind(host: str, port: int | None) -> socket.socket:
    """Return a socket that listens at this port. If `port` is None, it listens at PORT or, if that is taken, at a free
    port. CoralError if it cannot.

    Browsers can connect from then on; they are answered once the server has started.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = (PORT, 0) if port is None else (port,)
    for place, number in enumerate(wanted, 1):
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it. An answer is sent in two pieces: without it the second waits until the browser has
        # acknowledged the first, which takes 40 ms; so do the second and later ones of several live events.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            bound.bind((host, number))
            bound.listen(BACKLOG)
        except (OSError, OverflowError) as error:  # the latter for a number that is no port
            bound.close()
            if place < len(wanted):
                continue
            reason = getattr(error, "strerror", None) or "a port is a number from 0 to 65535"
            raise CoralError(f"cannot serve at {host}:{number}: {reason}", "choose another: --port") from None
        bound.set_inheritable(False)
        return bound
    raise AssertionError("one of the ports was tried last")


def access_at(bound: socket.socket) -> PageAccess:
    """Return the access to the port of a bound socket, with the token from the environment or a new one. CoralError if
    the given token is too short or not printable ASCII."""
    port, given = int(bound.getsockname()[1]), os.environ.pop(TOKEN, "")  # no child inherits it
    if not given:
        return PageAccess(port)
    if len(given) < LEAST_TOKEN or not given.isascii() or not given.isprintable():
        raise CoralError(
            f"cannot use {TOKEN}: it is too easy to guess", f"give at least {LEAST_TOKEN} letters and digits"
        )
    return PageAccess(port, given)


def address(host: str, access: PageAccess) -> str:
    """Return the address that opens the page. It has the token in it."""
    name = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)
    return f"http://{f'[{name}]' if ':' in name else name}:{access.port}/?token={quote(access.token, safe='')}"


def warning(host: str) -> str:
    """Return a warning if other machines can reach this host; empty for loopback."""
    if is_loopback(host):
        return ""
    return (
        f"{host} can be reached from other machines: whoever has the token can steer this run, and the connection is "
        "not encrypted. Better: `ssh -L` to a dashboard on loopback"
    )


def serve(layout: Layout, bound: socket.socket, access: PageAccess, until: TextIO | None = None) -> None:
    """Serve until SIGINT or SIGTERM, or until the input `until` ends."""
    runs = Runs(layout)
    config = uvicorn.Config(
        application(runs, access),
        log_level="warning",
        access_log=False,  # the first address has the token
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    server = _Server(config, runs)
    if until is not None:
        threading.Thread(target=_end_with, args=(server, until), daemon=True).start()
    server.run([bound])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, runs: Runs) -> None:
        super().__init__(config)
        self._runs = runs

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the live connections first: they never end by themselves, and one that is cut off is an error."""
        self._runs.end_feeds()
        await super().shutdown(sockets)


def _end_with(server: uvicorn.Server, until: TextIO) -> None:
    while until.readline():
        pass
    server.should_exit = True
