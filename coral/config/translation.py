"""Builds a task of ours from one of another system, key by key, and collects the lines of a report for the user."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coral.config.document import Document, KeyPath, Problem, nearest, shown

_FLAGS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


class Translation:
    """Builds the document of our task. `lines`: the report, to which `say` adds a line for each value that was changed
    or left out."""

    def __init__(self, given: Document, folder: Path) -> None:
        self.given, self.folder = given, folder
        self.document = Document(data={}, problems=given.problems)
        self.lines: list[str] = []
        self.below: Path | None = None  # a repository over which the files of the task's seed are laid
        self.say: Callable[[str], None] = self.lines.append

    def section(self, name: str) -> dict[str, Any]:
        """Return a section as it was given; empty if it was not given."""
        data = self.given.data
        return self.keys((name,), data.get(name) if isinstance(data, dict) else None)

    def keys(self, path: KeyPath, value: Any) -> dict[str, Any]:
        """Return the value of a key as a section; empty, with a problem at its place, if it is none."""
        if value and not isinstance(value, dict):
            self._refuse(path, "a section of keys and values", value)
        return value if isinstance(value, dict) else {}

    def entries(self, path: KeyPath, value: Any) -> list[dict[str, Any]]:
        """Return the value of a key as a list of sections; with a problem at the place of what is none."""
        if value and not isinstance(value, list):
            self._refuse(path, "a list", value)
        found = value if isinstance(value, list) else []
        return [self.keys((*path, number), entry) for number, entry in enumerate(found)]

    def _refuse(self, path: KeyPath, what: str, value: object) -> None:
        text = f"must be {what}; got {shown(value)}"
        self.given.problems.append(Problem(path, text, nearest(self.given.marks, path)))

    def put(self, target: str, value: object, source: str) -> None:
        """Set a key of our task. Problems of its value are reported at the place of the key `source` of the file."""
        *sections, last = target.split(".")
        place: Any = self.document.data
        for name in sections:
            place = place.setdefault(name, {})
        place[last] = value
        path: KeyPath = tuple(source.split("."))
        for given, mark in self.given.marks.items():
            if given[: len(path)] == path:
                self.document.marks[(*target.split("."), *given[len(path) :])] = mark

    def move(self, target: str, source: str, convert: Callable[[Any], object] = lambda value: value) -> None:
        """Set a key of our task to the converted value of the key `source`, if the file gives that."""
        section, _, name = source.partition(".")
        values = self.section(section)
        if values.get(name) is not None:
            self.put(target, convert(values[name]), source)

    def leave(self, source: str, why: str) -> None:
        self.say(f"{source}: {why}")


def texts(value: Any) -> list[str]:
    """Return a list as texts; a single value becomes a list of one."""
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def whole(value: Any) -> object:
    """Return a whole number, also of one in quotes; anything else unchanged, so that the check of our task names it."""
    try:
        return value if isinstance(value, bool) else int(str(value))
    except ValueError:
        return value


def flag(value: Any, default: bool = False) -> bool:
    """Read true and false as YAML 1.1 writes them: `yes`, `on`, `no`, `off` as well."""
    return default if value is None else _FLAGS.get(str(value).lower(), bool(value))


def unknown(made: Translation, where: str, values: dict[str, Any], known: set[str]) -> None:
    """Report the keys that the other format does not have."""
    for name in values.keys() - known:
        made.leave(f"{where}.{name}", f"unknown key (with {shown(values[name])}), left out")
