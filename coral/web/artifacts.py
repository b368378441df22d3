"""Serves the files that a grader left with an attempt. A candidate may have made them: whatever a browser would run or
interpret is only offered as a download. Pictures are recognized by their first bytes, and text is shown as plain
characters."""

import os
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote

from starlette.responses import Response

from coral.errors import CoralError
from coral.views import format
from coral.web.reading import RunView, names_in
from workspace.plain_file import folder_of, read_below

MOST_FILES = 100
LONGEST_FILE = 12 << 20  # bytes; a grade keeps fewer
LONGEST_TEXT = 200_000  # bytes that are shown
LOOKED_AT = 4096  # bytes that tell a text from other data
PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
# Stricter than that of the page: opened by itself, a file is a document of its own.
POLICY = "default-src 'none'; sandbox"

Json = dict[str, object]


def listed(view: RunView, number: int) -> list[Json]:
    """Return the files of an attempt, at most MOST_FILES: name, size, and whether a page can show it as a picture or as
    text."""
    found = [_file(view, number, name) for name in names_in(view.layout.grade(number))[:MOST_FILES]]
    return [file for file in found if file is not None]


def _file(view: RunView, number: int, name: str) -> Json | None:
    path = f"grades/{number}/{name}"
    start = read_below(view.layout.root, path, LOOKED_AT)
    if start is None or format.line(name, 255) != name:
        return None  # a link, a folder, or a name that no address can hold
    with folder_of(view.layout.root, path) as place:
        size = os.stat(name, dir_fd=place, follow_symlinks=False).st_size
    return {"name": name, "size": _size(size), "shown_as": _kind(start)}


def _size(count: int) -> str:
    return f"{count} bytes" if count < 1000 else f"{count / 1000:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


def _kind(start: bytes) -> str:
    if picture_type(start):
        return "picture"
    return "" if b"\0" in start else "text"


def picture_type(start: bytes) -> str:
    """Return the media type of a picture by its first bytes; empty for anything else. SVG does not count as a picture,
    because it is a document that may have scripts."""
    if start.startswith(b"RIFF") and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for mark, kind in PICTURES.items() if start.startswith(mark)), "")


def text_of(view: RunView, number: int, asked: Mapping[str, str]) -> Json:
    """Return the first LONGEST_TEXT bytes of a file as text. CoralError if there is no file of that name."""
    data = _read(view, number, asked, LONGEST_TEXT + 1)
    return {
        "text": format.clean(data[:LONGEST_TEXT].decode("utf-8", "replace")),
        "cut": len(data) > LONGEST_TEXT,
    }


def download(view: RunView, number: int, asked: Mapping[str, str]) -> Response:
    """Return a file as it is: a picture to be shown, anything else to be saved. CoralError if there is none of that
    name."""
    data = _read(view, number, asked, LONGEST_FILE)
    kind = picture_type(data)
    way = "inline" if kind and not asked.get("save") else "attachment"
    headers = {
        "content-disposition": f"{way}; filename*=UTF-8''{quote(asked['name'], safe='')}",
        "content-security-policy": POLICY,
    }
    return Response(data, HTTPStatus.OK, headers, media_type=kind or "application/octet-stream")


def _read(view: RunView, number: int, asked: Mapping[str, str], most: int) -> bytes:
    """Read a file of an attempt. CoralError unless the name is that of a plain file in the attempt's folder, which this
    reader may see."""
    view.attempt(number, "read a file of")  # whether this attempt may be seen at all
    name = asked.get("name", "")
    is_name = name and not name.startswith(".") and "/" not in name and "\0" not in name
    try:
        data = read_below(view.layout.root, f"grades/{number}/{name}", most) if is_name else None
    except ValueError:  # characters that no file system has
        data = None
    if data is None:
        shown = format.line(name, 80)
        raise CoralError(f"cannot read the file {shown!r} of #{number}: there is none", "its page lists the files")
    return data
