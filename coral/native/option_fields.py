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
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(str(name) for name in data if name not in known):
        raise ValueError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    for name, value in plain.items():
        if known[name].metadata and (wanted := _wanted(known[name], value)):  # of the others its dataclass takes care
            raise ValueError(f"{name} must be {wanted}; got {data[name]!r}")
    return kind(**plain)


def _wanted(one: "Field[Any]", value: object) -> str:
    """Say in words what the field takes; empty if the value is right."""
    least, most, among = (one.metadata[name] for name in ("least", "most", "among"))
    limits = (f" from {least:.10g}" if least > -math.inf else "") + (f" to {most:.10g}" if most < math.inf else "")
    number = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
    longest = f" of at most {most:.10g} characters" if most < math.inf else ""
    kinds: dict[Any, tuple[bool, str]] = {
        str: (isinstance(value, str) and len(value) <= most, f"a text{longest}"),
        bool: (isinstance(value, bool), "true or false"),
        int: (number and isinstance(value, int), f"a whole number{limits}"),
        float: (number, f"a number{limits}"),
        float | None: (number or value is None, f"a number{limits}"),
        tuple[str, ...]: (isinstance(value, tuple) and all(isinstance(v, str) for v in value), "a list of texts"),
    }
    is_right, words = (value in among, " or ".join(among)) if among else kinds[one.type]
    return "" if is_right else words
