"""The page's own files, read once when the server starts: a request chooses among them by name, and opens no file."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).with_name("static")
PAGE = "/"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class Asset:
    content: bytes
    media_type: str
    digest: str


@cache
def assets() -> dict[str, Asset]:
    """By path, `/style.css`; the page itself, which needs a cookie, is `/`."""
    found = {}
    for path in sorted(STATIC.rglob("*")):
        if path.suffix in TYPES and path.is_file():
            name = "/" + path.relative_to(STATIC).as_posix()
            content = path.read_bytes()
            digest = sha256(content).hexdigest()[:16]
            found[PAGE if name == "/index.html" else name] = Asset(content, TYPES[path.suffix], digest)
    return found


def open_paths() -> frozenset[str]:
    return frozenset(assets()) - {PAGE}
