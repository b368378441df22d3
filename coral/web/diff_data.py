"""Turns a difference of git into data: files, and their lines as coloured pieces. The text may be hostile: of a long
difference only the first part is shown, and lines that are too long for source text are not coloured."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from coral.views import format

MOST_LINES = 4000  # of one difference
MOST_FILES = 200
LONGEST_LINE = 2000  # characters that are shown
LONGEST_COLOURED = 400  # a longer line is no source text: patterns of a lexer may take for ever with it
LONGEST_GAP = 400  # characters of white space between two others; with more, the patterns for C take hours
MOST_COLOURED = 1500  # lines of one difference, which take a tenth of a second of a core
COLOURING_SECONDS = 2.0  # of a core: for each of many comments that never end, a lexer reads all the rest
LANGUAGES = {
    "c": "c",
    "cc": "cpp",
    "cpp": "cpp",
    "cu": "cuda",
    "go": "go",
    "h": "c",
    "hpp": "cpp",
    "java": "java",
    "jl": "julia",
    "js": "javascript",
    "json": "json",
    "py": "python",
    "pyi": "python",
    "r": "r",
    "rs": "rust",
    "sh": "bash",
    "sql": "sql",
    "toml": "toml",
    "ts": "typescript",
    "yaml": "yaml",
    "yml": "yaml",
}
# The names of the stylesheet, for the kinds of tokens that are told apart.
CLASSES = (
    (Comment, "comment"),
    (String, "string"),
    (Number, "literal"),
    (Keyword, "keyword"),
    (Operator.Word, "keyword"),
    (Name.Function, "name"),
    (Name.Class, "name"),
    (Name.Decorator, "name"),
    (Name.Builtin, "builtin"),
)
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
# Beginnings of git's lines, and the note shown for each. After a note that ends with a space, the rest of the line
# is shown, too.
_NOTES = {
    "new file": "new file",
    "deleted file": "removed",
    "rename from ": "renamed from ",
    "Binary files": "binary",
    "new mode ": "now of mode ",
}
_GAP = re.compile(r"\s+")
_SIDES = {" ": "same", "+": "added", "-": "removed"}

Json = dict[str, object]
Piece = list[str]  # a class of the stylesheet (empty for plain text), and the text


@dataclass
class _Line:
    """One line of a difference. `before`, `after`: its number in the old and in the new file; None if that file does
    not have it. `pieces`: its coloured pieces, None if it is not coloured."""

    kind: str
    text: str
    before: int | None = None
    after: int | None = None
    pieces: list[Piece] | None = None


@dataclass
class _File:
    name: str
    notes: list[str] = field(default_factory=list)
    hunks: list[list[_Line]] = field(default_factory=list)


def files(text: str) -> Json:
    """Return the files of a difference, each with its lines and how many of them were left out."""
    found = list(islice(_parsed(text), MOST_FILES + 1))
    left, coloured, until = MOST_LINES, MOST_COLOURED, time.thread_time() + COLOURING_SECONDS
    shown = []
    for file in found[:MOST_FILES]:
        lines = [line for hunk in file.hunks for line in hunk][:left]
        _colour(file, min(coloured, len(lines)), until)
        left, coloured = left - len(lines), coloured - len(lines)
        shown.append(_as_json(file, lines))
    return {"files": shown, "more_files": len(found) > MOST_FILES}


def _as_json(file: _File, lines: list[_Line]) -> Json:
    every = [line for hunk in file.hunks for line in hunk]
    return {
        "name": file.name,
        "notes": file.notes,
        "added": sum(line.kind == "added" for line in every),
        "removed": sum(line.kind == "removed" for line in every),
        "lines": [[line.kind, line.before, line.after, line.pieces or _plain(line)] for line in lines],
        "left_out": len(every) - len(lines),
    }


def _plain(line: _Line) -> list[Piece]:
    cut = line.text[:LONGEST_LINE]
    return [["", cut if len(cut) == len(line.text) else f"{cut} ... {len(line.text) - len(cut)} more characters"]]


def _parsed(text: str) -> Iterator[_File]:
    """Yield the files of a difference. The lines of a hunk are counted, so that a line of a file is never taken for one
    of git's own lines."""
    lines = iter(text.split("\n"))
    file: _File | None = None
    for line in lines:
        if line.startswith("diff --git "):
            if file is not None:
                yield file
            file = _File(_name_in(line))
        elif file is not None and (found := _HUNK.match(line)):
            file.hunks.append(_hunk(found, lines))
        elif file is not None:
            _note(file, line)
    if file is not None:
        yield file


def _name_in(line: str) -> str:
    """Return the name from `diff --git a/NAME b/NAME`, if both names are the same; else what follows the last ` b/`."""
    both = line.removeprefix("diff --git ")
    half = both[len(both) // 2 + 1 :]
    name = half if both == f"a/{half[2:]} {half}" else both.rpartition(" b/")[2]
    return _clean(name.removeprefix("b/").strip('"'))


def _clean(line: str) -> str:
    """Return a line without control characters. Lines must be split at line feeds before that, because git does not end
    a line at a carriage return."""
    return format.source(line.removesuffix("\r")).replace("\n", " ")


def _note(file: _File, line: str) -> None:
    """Add to the file's notes what a line of git's says about the file as a whole, if it is of interest to people."""
    for start, note in _NOTES.items():
        if line.startswith(start):
            file.notes.append(f"{note}{_clean(line.removeprefix(start))}" if note.endswith(" ") else note)


def _hunk(found: re.Match[str], lines: Iterator[str]) -> list[_Line]:
    before, after = int(found[1]), int(found[3])
    left = {"same": int(found[2] or 1), "added": int(found[4] or 1)}  # in the old file, in the new one
    held = [_Line("hunk", _clean(found.string))]
    while left["same"] > 0 or left["added"] > 0:
        line = next(lines, None)
        if line is None:
            break  # the difference was cut off here
        kind = _SIDES.get(line[:1])
        if kind is None:
            if not line.startswith("\\"):  # "No newline at end of file"
                break
            continue
        old, new = kind != "added", kind != "removed"
        held.append(_Line(kind, _clean(line[1:]), before if old else None, after if new else None))
        before, after = before + old, after + new
        left["same"], left["added"] = left["same"] - old, left["added"] - new
    return held


def _colour(file: _File, most: int, until: float) -> None:
    """Colour the first `most` lines of a file, hunk by hunk: the old side and the new side are coloured as two texts.
    What is not coloured `until` this time of the thread stays plain."""
    name = LANGUAGES.get(file.name.rpartition(".")[2].lower())
    lexer = get_lexer_by_name(name, stripnl=False, ensurenl=False) if name else None
    for hunk in file.hunks:
        if lexer is None or most <= 0 or time.thread_time() > until:
            return
        part = hunk[1 : most + 1]
        most -= len(part)
        if all(len(line.text) <= LONGEST_COLOURED for line in part):
            for side in ("removed", "added"):
                _colour_side([line for line in part if line.kind in (side, "same")], lexer, until)


def _colour_side(lines: list[_Line], lexer: Lexer, until: float) -> None:
    text = "\n".join(line.text for line in lines)
    if any(len(gap) > LONGEST_GAP for gap in _GAP.findall(text)):
        return
    coloured = list(_pieces(text, lexer, until))
    if len(coloured) == len(lines):  # if the lexer splits lines elsewhere, colours would shift
        for line, pieces in zip(lines, coloured, strict=True):
            if sum(len(text) for _, text in pieces) == len(line.text):
                line.pieces = pieces


def _pieces(text: str, lexer: Lexer, until: float) -> Iterator[list[Piece]]:
    """Yield the coloured pieces of each line; neighbours of one colour are joined. Ends early if it takes too long."""
    line: list[Piece] = []
    for token, value in lexer.get_tokens(text):
        if time.thread_time() > until:
            return
        kind = _class(token)
        for place, part in enumerate(value.split("\n")):
            if place:
                yield line
                line = []
            if part and line and line[-1][0] == kind:
                line[-1][1] += part
            elif part:
                line.append([kind, part])
    yield line


def _class(token: _TokenType) -> str:
    above = token.split()  # the kind and all kinds that it is a part of
    return next((name for kind, name in CLASSES if kind in above), "")
