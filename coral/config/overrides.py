"""Overrides such as `agents.count=4` on the command line: they change the document before it is checked."""

from collections.abc import Iterable

from coral.config import document as yaml
from coral.config.document import Document
from coral.config.problem import KeyPath, Mark, Problem


def apply_overrides(document: Document, overrides: Iterable[str]) -> None:
    """Set each `section.key=value` in the document, in order: a later one wins."""
    for override in overrides:
        mark = Mark(0, 0, override)
        path, found, text = override.partition("=")
        keys: KeyPath = tuple(key.strip() for key in path.split("."))
        if not found or not all(keys):
            document.problems.append(Problem((), "is not of the form section.key=value", mark))
            continue
        value = _value(text, mark, keys, document.problems)
        _set(document, keys, value, mark)


def _value(text: str, mark: Mark, keys: KeyPath, problems: list[Problem]) -> object:
    """The value of a YAML scalar, or of a list or mapping in brackets; else the text as it is: `task.tips=a: b # c`."""
    if text.strip() == "":
        return ""
    read = yaml.read(text)
    bracketed = text.lstrip()[0] in "[{\"'"
    if bracketed:
        problems.extend(Problem(keys, problem.text, mark) for problem in read.problems)
        return read.data
    plain = text.lstrip()[0] not in "&*!|>" and "#" not in text and "\n" not in text
    return read.data if plain and not read.problems and not isinstance(read.data, dict | list) else text


def _set(document: Document, keys: KeyPath, value: object, mark: Mark) -> None:
    if not isinstance(document.data, dict):
        return  # the file is not a task: that problem is listed
    section = document.data
    for depth, key in enumerate(keys[:-1], start=1):
        below = section.get(key)
        if below is None:
            below = section[key] = {}
            document.marks[keys[:depth]] = mark
        elif not isinstance(below, dict):
            document.problems.append(Problem(keys[:depth], "holds no keys; override it whole: key=value", mark))
            return
        section = below
    section[keys[-1]] = value
    for inner in [path for path in document.marks if path[: len(keys)] == keys]:
        del document.marks[inner]  # the keys below the replaced value are gone
    document.marks[keys] = mark
