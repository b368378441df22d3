"""`agents.count=4` on the command line: laid over the file before anything is checked, and named in what goes wrong."""

from collections.abc import Iterable

from coral.config import document as yaml
from coral.config.document import Document
from coral.config.problem import Mark, Path, Problem


def apply(document: Document, overrides: Iterable[str]) -> None:
    """Lay each `section.key=value` over the document, in order. A later one wins."""
    for override in overrides:
        mark = Mark(0, 0, override)
        path, found, text = override.partition("=")
        keys: Path = tuple(key.strip() for key in path.split("."))
        if not found or not all(keys):
            document.problems.append(Problem((), "is not of the form section.key=value", mark))
            continue
        value = _value(text, mark, keys, document.problems)
        _lay(document, keys, value, mark)


def _value(text: str, mark: Mark, keys: Path, problems: list[Problem]) -> object:
    """A YAML scalar, or a list or mapping in brackets; else the text itself: `task.tips=use: less # now`."""
    if text.strip() == "":
        return ""
    read = yaml.read(text)
    bracketed = text.lstrip()[0] in "[{\"'"
    if bracketed:
        problems.extend(Problem(keys, problem.text, mark) for problem in read.problems)
        return read.data
    plain = text.lstrip()[0] not in "&*!|>" and "#" not in text and "\n" not in text
    return read.data if plain and not read.problems and not isinstance(read.data, dict | list) else text


def _lay(document: Document, keys: Path, value: object, mark: Mark) -> None:
    if not isinstance(document.data, dict):
        return  # the file itself is not a task; that is the problem to tell
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
        del document.marks[inner]  # what stood below the replaced value has no place any more
    document.marks[keys] = mark
