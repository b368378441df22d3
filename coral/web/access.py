"""Decides which requests the dashboard answers. Every request passes through `Guard` first.

A page of another site in the same browser must get nothing, nor must a foreign host name that was pointed to this
machine. Therefore the Host must be an address or a name of this machine, the Origin must be the page's own, and each
request must carry a cookie that only the address with the token sets. A change also needs a header that only a script
of this page can send.
"""

import hashlib
import hmac
import ipaddress
import json
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CHANGE_HEADER = "x-coral-change"
LEAST_TOKEN = 16  # characters
LONGEST_BODY = 100_000  # bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
# For a browser without the cookie: it was closed, or the server was started again with another token.
LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Coral: token needed</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="/style.css"></head>
<body><main class="login"><h1>Coral</h1><p>This address needs the token that <code>coral ui</code> printed. Open the
whole address that it printed last, or paste the token here.</p><form method="get" action="/"><label>Token
<input name="token" type="password" autocomplete="off" required></label> <button>Open</button></form></main></body>
</html>
"""


@dataclass(frozen=True)
class PageAccess:
    """The token of the dashboard at one port, and the values derived from it: the cookie, and the header of a
    change."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie_name(self) -> str:
        """The name of the cookie. It has the port in it: browsers send a cookie to every port of a host, and two
        dashboards must not overwrite each other's."""
        return f"coral-{self.port}"

    @property
    def cookie(self) -> str:
        return self._derived("cookie")

    @property
    def change(self) -> str:
        """The value of the header CHANGE_HEADER, which the page sends with each change."""
        return self._derived("change")

    def is_token(self, given: str) -> bool:
        return _same(given, self.token)

    def is_cookie(self, headers: Mapping[str, str]) -> bool:
        return _same(cookie_parser(headers.get("cookie", "")).get(self.cookie_name, ""), self.cookie)

    def may_change(self, headers: Mapping[str, str]) -> bool:
        return _same(headers.get(CHANGE_HEADER, ""), self.change)

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())


def is_own_host(host: str) -> bool:
    """Return whether a Host header names this machine by an address or by its own name. Somebody may have pointed any
    other name to this machine, so that a browser takes a foreign page for ours."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        if urlsplit(f"//{host}").username is not None:
            return False
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name in own_names()
    return True


@cache
def own_names() -> frozenset[str]:
    """Return the names of this machine. They are looked up once: a name server may take seconds to answer, and open
    pages would wait as long."""
    return frozenset([socket.gethostname().lower(), socket.getfqdn().lower()])


def is_loopback(address: str) -> bool:
    """Return whether a socket that is bound to this address can be reached from this machine alone."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class Guard:
    """Refuses requests that are not allowed, and adds the security headers to every answer that has not set stricter
    ones itself. `open_paths`: files without any data of a run, which the page needs before it has a cookie."""

    def __init__(self, app: ASGIApp, access: PageAccess, open_paths: frozenset[str]) -> None:
        self._app = app
        self._access = access
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await (refused or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not allowed or that logs in; None if the request may pass."""
        headers, method, path = Headers(scope=scope), scope["method"], scope["path"]
        if not is_own_host(headers.get("host", "")):
            return refusal(HTTPStatus.MISDIRECTED_REQUEST, "this is not the name of this machine")
        if not _is_own_origin(headers):
            return refusal(HTTPStatus.FORBIDDEN, "another page may not ask here")
        if method not in ("GET", "HEAD", "POST"):
            return refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST are known")
        if path in self._open_paths and method != "POST":
            return None
        if path == "/" and method == "GET" and (given := QueryParams(scope["query_string"]).get("token")):
            return self._enter(given)
        if not self._access.is_cookie(headers):
            return (
                _login()
                if path == "/"
                else refusal(HTTPStatus.UNAUTHORIZED, "open the address that `coral ui` printed")
            )
        if method == "POST":
            return self._refused_change(headers)
        return None

    def _enter(self, given: str) -> Response:
        if not self._access.is_token(given):
            return _login()
        # The redirect removes the token from the address bar, the history and any picture of the screen.
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.set_cookie(self._access.cookie_name, self._access.cookie, path="/", httponly=True, samesite="strict")
        return answer

    def _refused_change(self, headers: Headers) -> Response | None:
        if not self._access.may_change(headers):
            return refusal(HTTPStatus.FORBIDDEN, "a change needs the page's own token")
        length = headers.get("content-length", "")
        # A body that is sent in chunks may be longer than any length that the request names.
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > LONGEST_BODY:
            return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is too long")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a change is JSON")
        return None


def refusal(status: HTTPStatus, message: str, hint: str = "") -> Response:
    """Return an answer whose JSON says what cannot be done, and what to do."""
    content = json.dumps({"error": message, "hint": hint}).encode("utf-8", "replace")
    return Response(content, status, media_type=JSONResponse.media_type)


def _login() -> Response:
    return Response(LOGIN, HTTPStatus.UNAUTHORIZED, media_type="text/html")


def _is_own_origin(headers: Headers) -> bool:
    """Return whether a request comes from our own page, from no page at all (the address bar or a program), or is a
    navigation, such as a followed link."""
    origin = headers.get("origin")
    own = headers.get("host", "").lower()
    if origin is not None and origin.lower() not in (f"http://{own}", f"https://{own}"):
        return False
    site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "")
    return site in ("none", "same-origin") or mode == "navigate"
