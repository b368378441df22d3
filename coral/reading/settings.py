"""Reads the settings of a run from its frozen task, as one text for each dotted key.

A value that may be a secret is hidden, because a report is made to be sent to other people.
"""

import json
import re
from collections.abc import Iterator, Mapping

from coral.config.load import SECTIONS, Config, load_frozen
from coral.config.section import Section
from coral.errors import CoralError
from coral.reading.run_view import RunView
from coral.views import format

LONGEST = 300  # characters of a value
HIDDEN = "(not shown)"
_SECRET = re.compile(r"(^|[_-])(key|token|secret|passwd|password|credentials?|auth|authorization)$", re.IGNORECASE)
_OF_THE_OPERATOR = "alerts"  # its addresses hold tokens, and say nothing of how a run was made
_ITS_OWN = ("task.name", "task.description", "task.tips")  # these say what the task is, not how it was run


def config_of(view: RunView) -> Config | None:
    """Return the frozen task; None if it cannot be read."""
    try:
        return load_frozen(view.layout.task_file)
    except CoralError:
        return None


def settings(config: Config, *, defaults: bool = False) -> dict[str, str]:
    """Return the settings that differ from their defaults, by dotted key; with `defaults` all settings. The addresses
    of alerts and the task's own texts are left out."""
    found: dict[str, str] = {}
    for name in SECTIONS:
        section = getattr(config, name)
        if isinstance(section, Section) and name != _OF_THE_OPERATOR:
            found |= dict(_values(name, section, defaults))
    heartbeats = config.heartbeats if defaults else config.changed_heartbeats
    found |= {f"heartbeats.{heartbeat.name}": heartbeat.when for heartbeat in heartbeats}
    found |= {f"heartbeats.{name}": "off" for name in config.heartbeats_off}
    return {key: value for key, value in found.items() if key not in _ITS_OWN}


def _values(name: str, section: Section, defaults: bool) -> Iterator[tuple[str, str]]:
    # In a mixed fleet these keys of `agents` hold for nobody: each assignment has its own.
    assignments = getattr(section, "assignments", ())
    mixed = type(assignments[0]).model_fields if assignments else {}
    for key, field in type(section).model_fields.items():
        if key in mixed:
            continue
        value = getattr(section, key)
        is_default = not field.is_required() and value == field.get_default(call_default_factory=True)
        dotted = f"{name}.{key}"
        if isinstance(value, Section):
            yield from _values(dotted, value, defaults)
        elif isinstance(value, tuple) and value and isinstance(value[0], Section):
            for place, part in enumerate(value):
                yield from _values(f"{dotted}.{place}", part, defaults)
        elif defaults or not is_default:
            yield dotted, _text(key, value)


def _text(key: str, value: object) -> str:
    if isinstance(value, Section):
        value = value.model_dump(mode="json")
    return format.line(json.dumps(_shown(key, value), default=str, ensure_ascii=False).strip('"'), LONGEST)


def _shown(key: str, value: object) -> object:
    """Return the value with everything in it replaced that may be a secret by its key."""
    if isinstance(value, Mapping):
        return {str(name): _shown(str(name), part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(key, part) for part in value]
    return HIDDEN if value and _SECRET.search(key) else value
