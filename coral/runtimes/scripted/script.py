"""A script of the `scripted` runtime: a list of steps, each a name or {name: value}, which are done in order.

A place in a script is the number of steps before it, so that a resumed session goes on at its place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `round`: the number of the innermost repetition, from 1, which replaces {n}."""

    name: str
    value: object
    round: int


def load(text: str) -> object:
    """Read a script: given as JSON, or as the path of a JSON or YAML file. OSError or ValueError if that fails."""
    if text.lstrip().startswith(("[", "{")):
        return json.loads(text)
    path = Path(text)
    content = path.read_text(encoding="utf-8")
    if path.suffix not in (".yaml", ".yml"):
        return json.loads(content)
    from ruamel.yaml import YAML  # slow to import: a script that must be ready at once is JSON
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(content)
    except YAMLError as error:
        raise ValueError(str(error)) from error


def walk(steps: Sequence[object], round_number: int = 1) -> Iterator[Step]:
    """Yield the steps in order; without end if one of them repeats without end."""
    for step in steps:
        name, value = split(step)
        if name != "repeat":
            yield Step(name, value, round_number)
            continue
        inner, times = repeat(value)
        count = 0
        while times is None or count < times:
            count += 1
            yield from walk(inner, count)


def split(step: object) -> tuple[str, object]:
    if isinstance(step, Mapping) and len(step) == 1:
        [(name, value)] = step.items()
        return str(name), value
    return str(step), None


def repeat(value: object) -> tuple[Sequence[object], int | None]:
    if isinstance(value, Mapping):
        steps, times = value.get("steps"), value.get("times")
        return (steps if isinstance(steps, list | tuple) else ()), (times if isinstance(times, int) else None)
    return (value if isinstance(value, list | tuple) else ()), None
