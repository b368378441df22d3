"""Builds our task out of one that was written for another system, key by key, and keeps what is to be said of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from coral.config.document import Document, KeyPath, shown

_FLAGS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}


class Translation:
    """Builds the document of our task. `say` takes a line for each thing that comes out otherwise than it was given."""

    def __init__(self, given: Document, folder: Path) -> None:
        self.given, self.folder = given, folder
        self.document = Document(data={}, problems=given.problems)
        self.lines: list[str] = []
        self.below: Path | None = None  # a folder over which the seed's files were to be laid
        self.say: Callable[[str], None] = self.lines.append

    def section(self, name: str) -> dict[str, Any]:
        """A section as it was given; empty where it is none."""
        data = self.given.data
        found = data.get(name) if isinstance(data, dict) else None
        return found if isinstance(found, dict) else {}

    def put(self, target: str, value: object, source: str) -> None:
        """Set a key of our task; its problems are told at the key `source` of the file."""
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
        """The same for a key that may have been given."""
        section, _, name = source.partition(".")
        values = self.section(section)
        if values.get(name) is not None:
            self.put(target, convert(values[name]), source)

    def leave(self, source: str, why: str) -> None:
        self.say(f"{source}: {why}")


def texts(value: Any) -> object:
    """A list of texts, also of a single one."""
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def whole(value: Any) -> object:
    """A whole number, also one in quotes; anything else as it is, for our own check to name."""
    try:
        return value if isinstance(value, bool) else int(str(value))
    except ValueError:
        return value


def flag(value: Any, default: bool = False) -> bool:
    """True and false as YAML 1.1 has them."""
    return default if value is None else _FLAGS.get(str(value).lower(), bool(value))


def unknown(made: Translation, where: str, values: dict[str, Any], known: set[str]) -> None:
    """Say which keys are none of the format."""
    for name in values.keys() - known:
        made.leave(f"{where}.{name}", f"unknown key (with {shown(values[name])}), left out")
