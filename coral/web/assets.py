"""The page's own files. They are read once, when the server starts: a request only chooses one by its name and opens no
file."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from posixpath import normpath

STATIC = Path(__file__).with_name("static")
PAGE = "/"
APPLICATION = "/app.js"
IMPORT = re.compile(rb"""^(?:import|export)\b[^;"']*["'](\.[^"']+)["'];""", re.MULTILINE)
MODULES = b"<!-- modules -->"  # where the page names them
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
    """Return the files by path, such as `/style.css`. The path of the page itself, which needs a cookie, is `/`."""
    files = {"/" + path.relative_to(STATIC).as_posix(): path for path in sorted(STATIC.rglob("*")) if path.is_file()}
    contents = {name: path.read_bytes() for name, path in files.items() if path.suffix in TYPES}
    page = contents.pop("/index.html").replace(MODULES, _preloads(imported_by(APPLICATION, contents)))
    found = {name: _asset(content, files[name].suffix) for name, content in contents.items()}
    return {PAGE: _asset(page, ".html"), **found}


def _asset(content: bytes, suffix: str) -> Asset:
    return Asset(content, TYPES[suffix], sha256(content).hexdigest()[:16])


def imported_by(name: str, contents: Mapping[str, bytes]) -> list[str]:
    """Return the modules that a module imports directly or indirectly, each once."""
    found = [name]
    for module in found:  # grows meanwhile
        folder = module.rpartition("/")[0]
        named = [normpath(f"{folder}/{path.decode()}") for path in IMPORT.findall(contents[module])]
        found += [path for path in dict.fromkeys(named) if path not in found]
    return found[1:]


def _preloads(modules: Iterable[str]) -> bytes:
    """Return the links that preload these modules. A browser finds the imports of a module only when it has loaded it;
    without the links it would load level after level."""
    return "\n    ".join(f'<link rel="modulepreload" href="{name}">' for name in modules).encode()


def open_paths() -> frozenset[str]:
    return frozenset(assets()) - {PAGE}
