"""Sends a message to a target: an address on the web, a program, the desktop, or a service that the package apprise
knows."""

import contextlib
import hashlib
import hmac
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import BadStatusLine, HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from importlib.util import find_spec
from typing import IO, Any
from urllib.parse import urlsplit

from attempts.fields import one_line
from coral.config.alerts import AlertRoute
from coral.errors import CoralError
from coral.extras import installs
from coral.notify.message import Message

SECONDS = 90.0  # that a target may take: some answer after a minute
VARIABLE = "env:"
DESKTOP = "desktop"
ON_PATH = "install it, on PATH; or name another target in `alerts.to`"
LONGEST_WORD = 12  # letters
WEB = ("http", "https")
TOO_LONG = "it took more than {:g} s"
LONGEST_REASON = 300  # characters; much of it is text of a foreign server
_ANSWER = 200  # characters of an answer that a problem quotes
_LAST_WORDS = 1.0  # seconds to read what a program that failed has said


class SendError(Exception):
    """The target did not accept a message. The text is the reason; `wait`: for how many seconds the target asked us to
    wait."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        super().__init__(one_line(reason, LONGEST_REASON))
        self.wait = wait


class Target:
    """One destination of a route. `name`: how it is shown, without what may be a password, a token or a path that works
    like one."""

    def __init__(self, route: AlertRoute, destination: str | tuple[str, ...]) -> None:
        """Raise CoralError if messages cannot be sent there from this machine."""
        self.route = route
        self.key = hashlib.sha256(repr((destination, route.level)).encode()).hexdigest()[:16]
        self.name, self._send = _way(route, destination)

    def send(self, message: Message) -> None:
        """Send a message. SendError if the target did not accept it. Blocks for SECONDS at most, or a little longer."""
        self._send(message)


def _way(route: AlertRoute, destination: str | tuple[str, ...]) -> tuple[str, Callable[[Message], None]]:
    if isinstance(destination, tuple):
        program = _program(destination[0], destination[0], "name one on PATH, or its path")
        return f"the program {destination[0]}", lambda message: _run([program, *destination[1:]], message)
    if destination == DESKTOP:
        return DESKTOP, _desktop()
    address, shown = destination, ""
    if destination.startswith(VARIABLE):
        variable = destination.removeprefix(VARIABLE)
        address, shown = _variable(variable, "send alerts to it"), destination
    parts = urlsplit(address)
    if parts.scheme in WEB and parts.hostname:
        secret = _variable(route.secret, "sign alerts").encode() if route.secret else b""
        host = parts.netloc.rpartition("@")[2]  # with its port: several servers may listen on this machine
        return shown or f"{parts.scheme}://{host}/...", lambda message: _post(address, secret, message)
    # A destination that is no address, such as a misspelt `desktop`, is named as it was typed if it cannot be a token.
    is_word = destination.isalpha() and len(destination) <= LONGEST_WORD
    name = shown or (destination if is_word else f"{parts.scheme or 'unknown'}://...")
    return name, _by_apprise(name, address)


def _variable(name: str, what_for: str) -> str:
    if not (value := os.environ.get(name, "")):
        raise CoralError(f"cannot {what_for}: the environment variable {name} is not set", f"export {name}")
    return value


def _program(name: str, target: str, hint: str) -> str:
    found = shutil.which(name)
    if found is None:
        what = "no such program" if name == target else f"no program {name}"
        raise CoralError(f"cannot send alerts to {target}: there is {what}", hint)
    return found


def _desktop() -> Callable[[Message], None]:
    if sys.platform == "darwin":
        script = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
        program = [_program("osascript", DESKTOP, ON_PATH), "-e", script]
    else:
        program = [_program("notify-send", DESKTOP, ON_PATH), "--app-name=Coral", "--"]
    return lambda message: _run([*program, message.title, message.text], message)


def _run(argv: list[str], message: Message) -> None:
    """Start a program with the message as JSON on its standard input. The message is accepted if the exit code is 0,
    even if something that the program started goes on."""
    try:
        child = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise SendError(f"it cannot be started: {error.strerror}") from None
    # Whatever it started may hold its standard error for long: that is read beside, and not waited for.
    errors, child.stderr = child.stderr, None
    assert errors is not None
    last: list[str] = []
    reader = threading.Thread(target=_keep_last_line, args=(errors, last), daemon=True)
    try:
        reader.start()
        child.communicate(json.dumps(message.data()).encode(), SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise SendError(TOO_LONG.format(SECONDS)) from None
    except RuntimeError as error:  # the system starts no further thread
        child.kill()
        child.communicate()
        errors.close()
        raise SendError(str(error)) from None
    if child.returncode:
        reader.join(_LAST_WORDS)
        raise SendError(f"exit code {child.returncode}" + "".join(f": {line[:_ANSWER]}" for line in last))


def _keep_last_line(stream: IO[bytes], last: list[str]) -> None:
    with stream:
        for line in stream:
            if text := line.decode("utf-8", "replace").strip():
                last[:] = [text]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Treats a redirection as a failure: urllib would follow it with a GET, without the message."""

    def redirect_request(self, *_: object) -> None:
        return None


class _OneConnection(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    """Keeps its connection so that `end` can break it off. The time limit of a socket begins again with each byte that
    arrives, so an answer that comes at a byte a minute would never end."""

    def __init__(self) -> None:
        super().__init__()
        self.is_ended = False
        self._connection: HTTPConnection | None = None

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._kept(HTTPConnection), req)

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._kept(HTTPSConnection), req)

    def end(self) -> None:
        self.is_ended = True
        if self._connection is not None and (open_one := self._connection.sock) is not None:
            with contextlib.suppress(OSError):  # it has ended meanwhile
                socket.socket.shutdown(open_one, socket.SHUT_RDWR)

    def _kept(self, kind: type[HTTPConnection]) -> Callable[..., HTTPConnection]:
        def connection(host: str, **named: Any) -> HTTPConnection:
            self._connection = kind(host, **named)
            return self._connection

        return connection


def _post(address: str, secret: bytes, message: Message) -> None:
    body = json.dumps(message.data()).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "coral"}
    if message.notices:
        headers["X-Coral-Id"] = message.notices[-1].id
    if secret:
        headers["X-Coral-Signature"] = f"sha256={hmac.new(secret, body, 'sha256').hexdigest()}"
    one = _OneConnection()
    limit = threading.Timer(SECONDS, one.end)
    limit.daemon = True
    limit.start()
    try:
        _open(urllib.request.Request(address, body, headers), one)
    finally:
        limit.cancel()


def _open(request: urllib.request.Request, one: _OneConnection) -> None:
    try:
        with urllib.request.build_opener(_NoRedirect, one).open(request, timeout=SECONDS):
            if one.is_ended:  # an answer that `end` cut off looks whole
                raise TimeoutError
    except urllib.error.HTTPError as error:
        with error:
            raise SendError(
                f"it answered {error.code} {error.reason}", _retry_after(error.headers.get("Retry-After", "").strip())
            ) from None
    except (OSError, ValueError, HTTPException) as error:  # a connection that breaks off, an answer that is no HTTP
        raise SendError(TOO_LONG.format(SECONDS) if one.is_ended else _reason(error)) from None


def _reason(error: Exception) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, TimeoutError):
        return TOO_LONG.format(SECONDS)
    if isinstance(cause, BadStatusLine) and not isinstance(cause, OSError):
        return f"it does not speak HTTP: {cause}"
    return str(getattr(cause, "strerror", None) or cause) or type(cause).__name__


def _retry_after(text: str) -> float:
    """Parse the header Retry-After; return seconds, 0 if it cannot be parsed."""
    if text.isdecimal():
        return float(text[:6])
    with contextlib.suppress(ValueError, TypeError):
        return max((parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds(), 0.0)
    return 0.0


def _by_apprise(name: str, address: str) -> Callable[[Message], None]:
    if find_spec("apprise") is None:
        raise CoralError(f"cannot send alerts to {name}: the package apprise is missing", installs("notify"))
    import apprise

    service = apprise.Apprise()
    if not service.add(address):
        raise CoralError(
            f"cannot send alerts to {name}: it is no address of a webhook, and apprise does not know it either",
            "give https://..., desktop, or an address of apprise's documentation",
        )

    def send(message: Message) -> None:
        if not service.notify(title=message.title, body=message.text):
            raise SendError("it was not accepted")

    return send
