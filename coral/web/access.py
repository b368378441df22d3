"""Who may ask the dashboard for what. Every request passes here before any page sees it.

A page in another tab, or a name that leads to this address, must get nothing: the Host has to be an address of this
machine, the Origin the page's own, and each request carries a cookie that only the first address gives. A change needs
in addition a header that only a script of this page can send.
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
# Where the browser kept no cookie: it was closed, or the server was started again.
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
    """The token, the cookie and the host names that open the dashboard at one port."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie_name(self) -> str:
        """Browsers send a cookie to every port of a host: two dashboards must not overwrite each other's."""
        return f"coral-{self.port}"

    @property
    def cookie(self) -> str:
        return self._derived("cookie")

    @property
    def change(self) -> str:
        """What the page sends along with a change."""
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
    """Whether a Host header names this machine by an address or by its own name. Any other name may have been pointed
    here by somebody else, to make a browser believe that his page and ours are one."""
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
    """The names of this machine. Asked for once: a name server may take seconds to tell the full one, and the pages
    that are open would wait as long."""
    return frozenset([socket.gethostname().lower(), socket.getfqdn().lower()])


def is_loopback(address: str) -> bool:
    """Whether only this machine can connect to what is bound to that address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


class Guard:
    """Lets through what may pass, and puts the security headers on every answer that has no stricter ones of its own.
    `open_paths`: files without any data
    of a run, which the page needs before it has a cookie."""

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
        """The answer to what may not pass; None for what may."""
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
        # The token leaves the address bar, so that it is neither in the history nor in a picture of the screen.
        answer = RedirectResponse("/", HTTPStatus.SEE_OTHER)
        answer.set_cookie(self._access.cookie_name, self._access.cookie, path="/", httponly=True, samesite="strict")
        return answer

    def _refused_change(self, headers: Headers) -> Response | None:
        if not self._access.may_change(headers):
            return refusal(HTTPStatus.FORBIDDEN, "a change needs the page's own token")
        length = headers.get("content-length", "")
        # Sent in pieces, a body would be as long as its pieces say, whatever length was named.
        if "transfer-encoding" in headers or not length.isdecimal() or int(length) > LONGEST_BODY:
            return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "that is too long")
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refusal(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a change is JSON")
        return None


def refusal(status: HTTPStatus, message: str, hint: str = "") -> Response:
    """An answer that says in JSON what cannot be done, and what to do."""
    content = json.dumps({"error": message, "hint": hint}).encode("utf-8", "replace")
    return Response(content, status, media_type=JSONResponse.media_type)


def _login() -> Response:
    return Response(LOGIN, HTTPStatus.UNAUTHORIZED, media_type="text/html")


def _is_own_origin(headers: Headers) -> bool:
    """Whether a request comes from our own page, or from no page at all: from the address bar or from a program."""
    origin = headers.get("origin")
    own = headers.get("host", "").lower()
    if origin is not None and origin.lower() not in (f"http://{own}", f"https://{own}"):
        return False
    site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "")
    return site in ("none", "same-origin") or mode == "navigate"
