"""The tools for files: read, list, search, edit, write."""

import fnmatch
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field

from coral.native.llm.tools.base import AgentTool
from coral.native.llm.window import clip
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError

MOST_NAMES, MOST_HITS = 400, 100
SEARCH_SECONDS = 30.0
LARGEST = 2_000_000  # bytes of a file that is read
SKIPPED = frozenset({".git", ".shared", "__pycache__", "node_modules"})


class ReadFile(AgentTool):
    """Read a text file of the workspace, or a part of it by line numbers."""

    name: ClassVar[str] = "read_file"
    path: str = Field(description="relative to the workspace")
    first: int = Field(1, ge=1, description="the first line")
    lines: int = Field(500, ge=1, le=5000, description="how many lines")

    def perform(self, bench: Workbench) -> str:
        lines = _text(bench, self.path).splitlines()
        part = lines[self.first - 1 : self.first - 1 + self.lines]
        if not part and lines:
            raise ToolError(f"{self.path} has {len(lines)} lines; there is no line {self.first}")
        end = self.first - 1 + len(part)
        rest = "" if end >= len(lines) else f"\n[lines {end + 1} to {len(lines)} are not shown]"
        return clip("\n".join(part), bench.longest) + rest if lines else "(the file is empty)"


class ListFiles(AgentTool):
    """List the files of the workspace, or those below a folder."""

    name: ClassVar[str] = "list_files"
    path: str = Field(".", description="the folder")
    pattern: str = Field("*", description="of the names, such as *.py")

    def perform(self, bench: Workbench) -> str:
        folder = bench.file(self.path)
        if not folder.is_dir():
            raise ToolError(f"there is no folder {self.path}; list_files without a path shows all files")
        found = [path for path in _walk(folder) if fnmatch.fnmatch(path.name, self.pattern)]
        shown = [f"{path.relative_to(folder)} ({path.lstat().st_size} bytes)" for path in found[:MOST_NAMES]]
        more = f"\n[{len(found) - MOST_NAMES} more]" if len(found) > MOST_NAMES else ""
        return clip("\n".join(shown), bench.longest) + more if found else "no file"


class SearchFiles(AgentTool):
    """Search the files of the workspace for a regular expression."""

    name: ClassVar[str] = "search"
    pattern: str = Field(min_length=1)
    path: str = Field(".", description="the file or folder to search in")

    def perform(self, bench: Workbench) -> str:
        place = bench.file(self.path)
        try:
            pattern = re.compile(self.pattern)
        except re.error as problem:
            raise ToolError(
                f"{self.pattern!r} is no regular expression: {problem}; escape special characters"
            ) from None
        found = _ripgrep(bench, self.pattern, place) or list(_own_search(bench, pattern, place))
        more = f"\n[only the first {MOST_HITS}]" if len(found) > MOST_HITS else ""
        return clip("\n".join(found[:MOST_HITS]), bench.longest) + more if found else "nothing matches"


class Replacement(BaseModel):
    old: str = Field(min_length=1, description="the exact text, with its blanks; it stands once in the file")
    new: str


class EditFile(AgentTool):
    """Change a file: each old text is replaced by its new one, in order; all of them, or none."""

    name: ClassVar[str] = "edit_file"
    works: ClassVar[bool] = True
    path: str
    edits: list[Replacement] = Field(min_length=1)

    def perform(self, bench: Workbench) -> str:
        text = _text(bench, self.path)
        for number, edit in enumerate(self.edits, 1):
            old, new = edit.old, edit.new
            if old not in text and "\r\n" in text:  # which read_file does not show
                old, new = (part.replace("\r\n", "\n").replace("\n", "\r\n") for part in (old, new))
            count = text.count(old)
            if count != 1:
                raise ToolError(_not_once(self.path, text, old, number, count))
            text = text.replace(old, new)
        _write(bench, self.path, text)
        return f"{self.path}: {len(self.edits)} edit{'s' if len(self.edits) > 1 else ''} made"


class WriteFile(AgentTool):
    """Write a whole file, new or in place of the one that is there."""

    name: ClassVar[str] = "write_file"
    works: ClassVar[bool] = True
    path: str
    content: str

    def perform(self, bench: Workbench) -> str:
        _write(bench, self.path, self.content)
        lines = len(self.content.splitlines())
        return f"{self.path}: {lines} {'line' if lines == 1 else 'lines'} written"


def _text(bench: Workbench, name: str) -> str:
    path = bench.file(name)
    try:
        if path.stat().st_size > LARGEST:
            raise ToolError(f"{name} is too large to be read whole; look at a part with run: head, tail, grep")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ToolError(f"{name} is no text in UTF-8; look at it with run") from None
    except OSError as problem:
        names = [str(other.relative_to(bench.clone.resolve())) for other in _walk(bench.clone.resolve())]
        close = get_close_matches(name, names, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "list_files shows what there is"
        raise ToolError(f"cannot read {name}: {problem.strerror}; {hint}") from None


def _write(bench: Workbench, name: str, text: str) -> None:
    """Write a file, whole or not at all, with the mode that it had."""
    path = bench.file(name, write=True)
    temporary = path.with_name(f".coral-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(text.encode("utf-8", "replace"))
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except OSError as problem:
        raise ToolError(f"cannot write {name}: {problem.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)


def _not_once(name: str, text: str, old: str, number: int, count: int) -> str:
    begin = f"edit {number}: the old text stands {count} times in {name}, so nothing was changed; "
    if count > 1:
        return begin + "give more of the lines around it, so that it stands there once"
    lines = [line for line in old.splitlines() if line.strip()]
    close = get_close_matches(lines[0], text.splitlines(), n=1, cutoff=0.5) if lines else []
    return begin + (f"the nearest line is {close[0]!r}" if close else "read the file, and copy the text exactly")


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(parent, name) for name in sorted(names))


def _ripgrep(bench: Workbench, pattern: str, place: Path) -> list[str]:
    """Return the hits of ripgrep, whose regular expressions are nearly those of Python; none if it is not installed."""
    program = shutil.which("rg", path=bench.environment.get("PATH"))
    if program is None:
        return []
    line = [program, "--line-number", "--no-heading", "--with-filename", "--max-columns=300", "--max-count=50"]
    try:
        done = subprocess.run(
            [*line, "-e", pattern, "--", os.path.relpath(place, bench.clone.resolve())],
            cwd=bench.clone,
            env=bench.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SEARCH_SECONDS,
        )
    except (subprocess.TimeoutExpired, OSError):
        return []
    return done.stdout.decode("utf-8", "replace").splitlines()


def _own_search(bench: Workbench, pattern: re.Pattern[str], place: Path) -> Iterator[str]:
    for path in [place] if place.is_file() else _walk(place):
        try:
            text = path.read_text("utf-8") if path.stat().st_size <= LARGEST else ""
        except (OSError, UnicodeDecodeError):
            continue
        shown = os.path.relpath(path, bench.clone.resolve())
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                yield f"{shown}:{number}:{line[:300]}"
