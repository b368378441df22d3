"""Makes one POST request over HTTP or HTTPS, whose answer is read piece by piece.

It uses the standard library, because a library for HTTP takes longer to import than all else that a launch does before
its first request. Each request has a connection of its own: a model is asked every few seconds at most.
"""

import os
import socket
import ssl
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from urllib.parse import SplitResult, unquote, urlsplit

CONNECT_SECONDS = 15.0
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Limits:
    """`silence`: seconds that may pass without a byte; `deadline`: of the monotonic clock, for all of the answer."""

    silence: float
    deadline: float

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.deadline


class UnusableRequestError(Exception):
    """An address or a header cannot be used; the message says why. The same request will never succeed."""


def read_url(url: str) -> SplitResult:
    """Read the address of a server or a proxy."""
    problem = UnusableRequestError(f"{url!r} is no address of the form http://HOST:PORT or https://HOST:PORT")
    try:
        parts = urlsplit(url)
        port = parts.port
        (parts.hostname or "").encode("idna")  # as the look-up of its address does, with an error of another kind
    except ValueError:
        raise problem from None
    plain = url.isascii() and url.isprintable() and " " not in url
    if not plain or parts.scheme not in PORTS or not parts.hostname or port == 0:
        raise problem
    return parts


@contextmanager
def post(url: str, headers: Mapping[str, str], body: bytes, limits: Limits) -> Iterator[HTTPResponse]:
    """Send the request and yield its answer, whatever its status. OSError or HTTPException if the connection fails or
    breaks; at the deadline it is broken from here."""
    connection, target, extra = _route(read_url(url))
    try:
        connection.connect()
        connection.sock.settimeout(limits.silence)
        with _broken_at(limits.deadline, connection.sock):
            try:
                connection.request("POST", target, body, {**headers, **extra, "Connection": "close"})
            except ValueError:  # of http.client; its text holds the header, and so the key
                raise UnusableRequestError("the key holds a character that no header may have") from None
            with connection.getresponse() as response:
                yield response
    finally:
        connection.close()


@contextmanager
def _broken_at(deadline: float, sock: socket.socket) -> Iterator[None]:
    """Shut the connection down at the deadline: a server that sends a byte a minute is never silent, not even in the
    middle of its headers."""

    def shut_down() -> None:
        with suppress(OSError):
            socket.socket.shutdown(sock, socket.SHUT_RDWR)  # of the socket below TLS, which another thread may read

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _route(server: SplitResult) -> tuple[HTTPConnection, str, dict[str, str]]:
    """Return a connection to the server or its proxy, what to ask there, and what headers that needs."""
    path = (server.path or "/") + (f"?{server.query}" if server.query else "")
    host, port = str(server.hostname), server.port or PORTS[server.scheme]
    secure, proxy = server.scheme == "https", _proxy(server)
    at, at_port = (str(proxy.hostname), proxy.port or PORTS["http"]) if proxy is not None else (host, port)
    connection = (
        HTTPSConnection(at, at_port, timeout=CONNECT_SECONDS, context=_tls())
        if secure
        else HTTPConnection(at, at_port, timeout=CONNECT_SECONDS)
    )
    if proxy is None:
        return connection, path, {}
    login = _login(proxy)
    if not secure:
        return connection, f"http://{server.netloc.rpartition('@')[2]}{path}", login
    connection.set_tunnel(host, port, login)
    return connection, path, {}


def _proxy(server: SplitResult) -> SplitResult | None:
    """Return the proxy that the environment names for a server: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, but NO_PROXY."""
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass

    named = getproxies()
    address = named.get(server.scheme) or named.get("all")
    if not address or proxy_bypass(f"{server.hostname}:{server.port or PORTS[server.scheme]}"):
        return None
    proxy = read_url(address if "://" in address else f"http://{address}")
    if proxy.scheme != "http":
        raise UnusableRequestError(
            f"the proxy {proxy.scheme}://{proxy.hostname} must be one that is reached by http://"
        )
    return proxy


def _login(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    words = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(words.encode()).decode()}"}


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
