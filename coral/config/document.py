"""Reads YAML 1.2 as plain values, with line and column of every key. Tags and merge keys are refused.

Overrides such as `agents.count=4` on the command line change the document before it is checked. Each problem has a
place in the file; one error lists them all, in the order of the file.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from coral.errors import CoralError

KeyPath = tuple[str | int, ...]
MAX_LISTED = 50  # problems; with more of them, most follow from one
LONGEST = 500  # characters of one problem
MAX_VALUES = 20_000  # an alias may repeat a list that repeats a list: a small file must not become a huge one
LONGEST_NUMBER = 1_000  # digits; Python refuses to print a number with many more
DEEPEST = 50  # sections in sections; a run must be able to write and read again what is read here
_TAG = "tag:yaml.org,2002:"
_CONSTANTS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """The place of a value: line and column of the file, from 1, or the override of the command line that set it."""

    line: int
    column: int
    override: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    path: KeyPath
    text: str
    mark: Mark | None = None


def dotted(path: KeyPath) -> str:
    """Return a path as messages show it: `heartbeats[2].every`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def nearest(marks: Mapping[KeyPath, Mark], path: KeyPath) -> Mark:
    """Return the mark of the path, or of the closest section around it: a missing key has no mark."""
    while path and path not in marks:
        path = path[:-1]
    return marks.get(path, Mark(1, 1))


def shown(value: object) -> str:
    """Return a value as messages repeat it: recognisable, and short enough for one line."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = f'"{value}"' if isinstance(value, str) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def refuse(name: str, problems: Iterable[Problem], marks: Mapping[KeyPath, Mark]) -> None:
    """Raise one error that lists every problem; return when there is none."""
    placed: dict[tuple[Mark, KeyPath, str], Problem] = {}
    for problem in problems:
        # One message for a value that could not be read: its type is wrong as well.
        same = problem.text if not problem.path else ""
        placed.setdefault((problem.mark or nearest(marks, problem.path), problem.path, same), problem)
    if not placed:
        return
    in_order = sorted(placed.items(), key=lambda item: item[0][0])
    lines = [_line(name, mark, problem) for (mark, _, _), problem in in_order[:MAX_LISTED]]
    count = "one problem" if len(placed) == 1 else f"{len(placed)} problems"
    lines += [f"... and {len(placed) - MAX_LISTED} more"] if len(placed) > MAX_LISTED else []
    raise CoralError(
        f"cannot use this task: {count}\n" + "\n".join(f"  {line}" for line in lines),
        "correct it where you typed it; `coral validate` checks the same words and costs nothing"
        if all(mark.override for mark, _, _ in placed)
        else "correct these lines; `coral validate` checks the task again and costs nothing",
    )


def _line(name: str, mark: Mark, problem: Problem) -> str:
    place = f"override {mark.override}" if mark.override else f"{name}:{mark.line}:{mark.column}"
    subject = f"{dotted(problem.path)}: " if problem.path else ""
    text = f"{subject}{problem.text}"
    line = f"{place}: {text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}"
    return line.encode("utf-8", "replace").decode()  # an argument of the command line may hold any bytes


@dataclass(slots=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None), the mark of each key, and the problems found on the way."""

    data: object = None
    marks: dict[KeyPath, Mark] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    values: int = 0


def read(text: str) -> Document:
    document = Document()
    try:
        with warnings.catch_warnings():
            # About an anchor that is given twice: YAML allows it, and the last one counts.
            warnings.simplefilter("ignore")
            root = YAML(typ="safe", pure=True).compose(text)
        document.data = _value(document, root, ()) if root is not None else None
    except MarkedYAMLError as error:
        document.problems.append(_syntax(error))
    except YAMLError as error:
        document.problems.append(Problem((), f"is not YAML: {str(error).splitlines()[0]}"))
    except RecursionError:
        document.problems.append(Problem((), "is nested too deeply, or too large"))
    return document


def _syntax(error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    text = f"is not YAML: {error.problem or error.context}"
    if "'\\t'" in text:
        text = "is not YAML: a tab; indent with spaces"
    elif "another document" in text:
        text = "is not one YAML document: a second one starts here"
    elif "mapping values are not allowed" in text:
        text = "is not YAML: a second `:` on the line, or wrong indentation; put a text that holds `: ` in quotes"
    return Problem((), text, Mark(mark.line + 1, mark.column + 1) if mark else None)


def _value(document: Document, node: Node, path: KeyPath) -> object:
    document.values += 1
    if document.values > MAX_VALUES or len(path) > DEEPEST:
        raise RecursionError
    if isinstance(node, MappingNode):
        return _mapping(document, node, path)
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            document.marks[(*path, index)] = _mark(item)
        return [_value(document, item, (*path, index)) for index, item in enumerate(node.value)]
    return _scalar(document, node, path)


def _mapping(document: Document, node: MappingNode, path: KeyPath) -> dict[str, object]:
    values: dict[str, object] = {}
    for key_node, value_node in node.value:
        mark = _mark(key_node)
        if not isinstance(key_node, ScalarNode) or (key_node.value == "<<" and not key_node.style):
            document.problems.append(Problem(path, "a key must be plain text (no merge keys, no lists)", mark))
            continue
        key = _joined(str(key_node.value))
        inner = (*path, key)
        if _has_halves(key):
            document.problems.append(Problem(path, "a key must be plain text (no halves of characters)", mark))
            continue
        if key in values:
            first = document.marks[inner].line
            document.problems.append(Problem(inner, f"given twice (first on line {first})", mark))
            continue
        document.marks[inner] = mark
        values[key] = _value(document, value_node, inner)
    return values


def _scalar(document: Document, node: Node, path: KeyPath) -> object:
    """Return the value of a scalar by YAML 1.2. A date stays text: no key of a task is a date."""
    tag, text = str(node.tag), _joined(str(node.value))
    if _has_halves(text):
        document.problems.append(Problem(path, "holds half a character, which no file can hold"))
        return None
    if not tag.startswith(_TAG) or tag.removeprefix(_TAG) not in _READ:
        document.problems.append(Problem(path, f"the tag {tag.replace(_TAG, '!!')} is not supported"))
        return text
    try:
        return _READ[tag.removeprefix(_TAG)](text)
    except (ValueError, KeyError):
        document.problems.append(Problem(path, f'"{text[:40]}" is not a value of its type'))
        return text


def _joined(text: str) -> str:
    """Join the surrogate pairs of a text: JSON escapes a character beyond the first 65,536 as two halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if _has_halves(text) else text


def _has_halves(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _integer(text: str) -> int:
    digits = text.replace("_", "").lower()
    if len(digits) > LONGEST_NUMBER:
        raise ValueError("too long")
    return int(digits, 0) if digits.lstrip("+-")[:2] in ("0x", "0o", "0b") else int(digits)


def _number(text: str) -> float:
    return float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))


_READ: dict[str, Callable[[str], object]] = {
    "null": lambda _: None,
    "bool": lambda text: _CONSTANTS[text.lower()],
    "int": _integer,
    "float": _number,
    "str": str,
    "timestamp": str,
    "value": str,
    "merge": str,
}


def _mark(node: Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)


def apply_overrides(document: Document, overrides: Iterable[str]) -> None:
    """Set each `section.key=value` in the document, in order: a later one wins."""
    for override in overrides:
        mark = Mark(0, 0, override)
        path, found, text = override.partition("=")
        keys: KeyPath = tuple(key.strip() for key in path.split("."))
        if not found or not all(keys):
            document.problems.append(Problem((), "is not of the form section.key=value", mark))
            continue
        _set(document, keys, _override(text, mark, keys, document.problems), mark)


def _override(text: str, mark: Mark, keys: KeyPath, problems: list[Problem]) -> object:
    """Return the value of a YAML scalar, or of a list or mapping in brackets; for any other text, the text itself."""
    if text.strip() == "":
        return ""
    found = read(text)
    if text.lstrip()[0] in "[{\"'":
        problems.extend(Problem(keys, problem.text, mark) for problem in found.problems)
        return found.data
    plain = text.lstrip()[0] not in "&*!|>" and "#" not in text and "\n" not in text
    return found.data if plain and not found.problems and not isinstance(found.data, dict | list) else text


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
