"""Declares and reads the options of a brain, as fields of a frozen dataclass. It does without pydantic, which takes
longer to import than everything else that a launch does before its work."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, field, fields
from typing import Any, TypeVar

Options = TypeVar("Options")


def option(
    default: object,
    description: str = "",
    *,
    least: float = -math.inf,
    most: float = math.inf,
    among: Sequence[str] = (),
) -> Any:
    """Declare a field. `least` and `most`: of a number, or of a text's length; `among`: the only texts that it
    takes."""
    limits = {"description": description, "least": least, "most": most, "among": tuple(among)}
    return field(default=default, metadata=limits)


def read_options(kind: type[Options], data: object) -> Options:
    """Return an instance of the dataclass `kind`. ValueError says which name is unknown or which value is wrong."""
    if not isinstance(data, Mapping):
        raise ValueError("the options must be an object")
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(str(name) for name in data if name not in known):
        raise ValueError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    for name, value in plain.items():
        if wanted := _wanted(known[name], value):
            raise ValueError(f"{name} must be {wanted}; got {data[name]!r}")
    return kind(**plain)


def _wanted(one: "Field[Any]", value: object) -> str:
    """Say in words what the field takes; empty if the value is right."""
    takes, least, most = one.type, one.metadata.get("least", -math.inf), one.metadata.get("most", math.inf)
    if takes == float | None and value is None:
        return ""
    if takes in (int, float, float | None):
        kinds = int if takes is int else (int, float)
        right = isinstance(value, kinds) and not isinstance(value, bool) and least <= value <= most
        return "" if right else f"{'a whole number' if takes is int else 'a number'}{_range(least, most)}"
    if takes is bool:
        return "" if isinstance(value, bool) else "true or false"
    if takes is str:
        return _wanted_text(one, value)
    if takes == tuple[str, ...]:
        right = isinstance(value, tuple) and all(isinstance(part, str) for part in value)
        return "" if right else "a list of texts"
    return ""  # its dataclass checks it


def _wanted_text(one: "Field[Any]", value: object) -> str:
    among, most = one.metadata.get("among", ()), one.metadata.get("most", math.inf)
    if among:
        return "" if value in among else " or ".join(among)
    if not isinstance(value, str):
        return "a text"
    return "" if len(value) <= most else f"a text of at most {most:.10g} characters"


def _range(least: float, most: float) -> str:
    if math.isinf(most):
        return "" if math.isinf(least) else f" from {least:.10g} on"
    return f" from {least:.10g} to {most:.10g}"
