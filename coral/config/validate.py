"""Plain values into sections: each section is checked on its own, so that one mistake does not hide the next."""

import difflib
from collections.abc import Mapping
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from coral.config.migrate import MOVED
from coral.config.model import HeartbeatEntry, TaskFile
from coral.config.problem import Path, Problem, dotted, shown

S = TypeVar("S", bound=BaseModel)
WORDS = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "tuple_type": "must be a list",
    "dict_type": "must be a section of keys and values",
    "model_type": "must be a section of keys and values",
    "finite_number": "must be a finite number",
    "string_too_short": "must not be empty",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "missing": "is missing: {description}",
}


def section(kind: type[S], values: object, path: Path, problems: list[Problem]) -> S | None:
    """The section, or None after its problems were noted. An empty section (`budget:`) has its defaults."""
    values = {} if values is None and len(path) == 1 else values
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problems.extend(_problem(kind, values, path, detail) for detail in error.errors(include_url=False))
        return None


def heartbeats(values: object, problems: list[Problem]) -> tuple[tuple[int, HeartbeatEntry], ...]:
    """The entries that can be read, each with its place in the list."""
    if values is None:
        return ()
    if not isinstance(values, list):
        problems.append(Problem(("heartbeats",), f"must be a list of entries, each with a name; got {shown(values)}"))
        return ()
    read = [(i, section(HeartbeatEntry, value, ("heartbeats", i), problems)) for i, value in enumerate(values)]
    return tuple((index, entry) for index, entry in read if entry is not None)


def strangers(values: Mapping[str, object], problems: list[Problem]) -> None:
    """Sections that no task has."""
    for key in values.keys() - TaskFile.model_fields.keys():
        problems.append(Problem((key,), _unknown(key, (key,), values[key], TaskFile)))


def _problem(kind: type[BaseModel], values: object, path: Path, detail: ErrorDetails) -> Problem:
    loc = _within(values, detail["loc"], missing=detail["type"] == "missing")
    here = (*path, *loc)
    value = detail["input"]
    if detail["type"] == "extra_forbidden":
        return Problem(here, _unknown(str(loc[-1]), here, value, _holder(kind, loc)))
    context = {name: _plain(value) for name, value in detail.get("ctx", {}).items()}
    if detail["type"] == "missing":
        description = _holder(kind, loc).model_fields[str(loc[-1])].description or ""
        return Problem(here, f"is missing: {description.partition('. ')[0].rstrip('.')}")
    if detail["type"] == "value_error":
        return Problem(here, f"{context['error']}; got {shown(value)}")
    text = WORDS.get(detail["type"], detail["msg"]).format(**context)
    quotes = detail["type"] == "string_type" and isinstance(value, int | float)
    return Problem(here, f"{text}; got {shown(value)}" + (" (put it in quotes)" if quotes else ""))


def _holder(kind: type[BaseModel], loc: Path) -> type[BaseModel]:
    """The section that has the last key of this path."""
    for part in loc[:-1]:
        field = kind.model_fields.get(str(part))
        kinds = [] if field is None else [field.annotation, *get_args(field.annotation)]
        kind = next((each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)), kind)
    return kind


def _within(values: object, loc: tuple[int | str, ...], *, missing: bool) -> Path:
    """The part of pydantic's location that exists in the file: it also names the branches of its own unions."""
    path: list[int | str] = []
    for part in loc:
        inside = (isinstance(values, dict) and part in values) or (
            isinstance(values, list) and isinstance(part, int) and part < len(values)
        )
        if inside:
            path.append(part)
            values = values[part]  # type: ignore[index]  # `inside` has proved it
        elif missing:
            path.append(part)
    return tuple(path)


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unknown(key: str, path: Path, value: object, kind: type[BaseModel]) -> str:
    text = f"unknown key (with {shown(value)})"
    if (moved := MOVED.get(dotted(tuple(part for part in path if isinstance(part, str))))) is not None:
        return f"{text}; {moved}"
    if near := difflib.get_close_matches(key.lower(), kind.model_fields, n=1):
        return f'{text}; did you mean "{near[0]}"?'
    for name, field in TaskFile.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel) and key in inner.model_fields:
            return f"{text}; it belongs under {name}"
    return f"{text}; the keys here are {', '.join(kind.model_fields)}"
