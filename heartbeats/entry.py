"""A heartbeat as people and agents write it: `name`, one trigger, and what differs from the heartbeat in force.

Keys that an entry leaves out keep their values, so that retiming a heartbeat never changes its scope or its prompt.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import TypeVar

from heartbeats.heartbeat import BUILT_IN, Heartbeat, HeartbeatError, find
from heartbeats.trigger import Elapsed, Every, Stagnant, Trigger

TRIGGERS = ("every", "stagnant", "minutes", "seconds")
KEYS = ("name", "enabled", *TRIGGERS, "scope", "delivery", "prompt")
_MOST = 10**9
_SPAN = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?([smhd])")  # a time with a unit: 30m
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
E = TypeVar("E", bound=StrEnum)


def from_entry(entry: object, current: tuple[Heartbeat, ...] = BUILT_IN) -> Heartbeat:
    """Return the heartbeat with the entry's name, as the entry changes it. HeartbeatError says what is wrong with the
    entry."""
    if not isinstance(entry, Mapping):
        raise HeartbeatError("cannot read a heartbeat: it is no mapping", "write name, and every, stagnant or minutes")
    name = _text(entry, "name", "")
    for key in entry:
        if key not in KEYS:
            raise _refused(name, f"there is no key {str(key)[:40]!r}", f"there are: {', '.join(KEYS)}")
    present = find(current, name) or find(BUILT_IN, name)
    trigger = _trigger(entry, name, present)
    base = present or Heartbeat(name=name, trigger=trigger)
    return replace(
        base,
        trigger=trigger,
        scope=_choice(entry, "scope", base.scope, name),
        delivery=_choice(entry, "delivery", base.delivery, name),
        prompt=_text(entry, "prompt", name) or base.prompt,
    )


def is_switched_off(entry: Mapping[str, object]) -> bool:
    """Return whether the entry removes a heartbeat: `enabled: false`, or a period of zero (`every: 0m`, `every: 0`)."""
    if entry.get("enabled") is False:
        return True
    every = entry.get("every")
    periods = (entry.get("minutes"), entry.get("seconds"), _seconds_of(every) if isinstance(every, str) else every)
    return any(period == 0 and not isinstance(period, bool) for period in periods)


def is_period(text: str) -> bool:
    """Return whether the text is a time with a unit, such as `30m`."""
    return _SPAN.fullmatch(text) is not None


def _seconds_of(value: object) -> float | None:
    found = _SPAN.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else float(found[1]) * _SECONDS[found[2]]


def to_dict(heartbeat: Heartbeat) -> dict[str, object]:
    """Return a heartbeat as plain data that people can read."""
    figure: float
    match heartbeat.trigger:
        case Every(n):
            key, figure = "every", n
        case Stagnant(n):
            key, figure = "stagnant", n
        case Elapsed(seconds):
            key, figure = "seconds", seconds
    return {
        "name": heartbeat.name,
        key: figure,
        "scope": heartbeat.scope.value,
        "delivery": heartbeat.delivery.value,
        "prompt": heartbeat.prompt,
        "protected": heartbeat.protected,
        "by": heartbeat.by,
    }


def _trigger(entry: Mapping[object, object], name: str, present: Heartbeat | None) -> Trigger:
    given = [key for key in TRIGGERS if entry.get(key) is not None]
    if len(given) > 1:
        raise _refused(name, f"it has {' and '.join(given)}", "a heartbeat has one trigger")
    if not given:
        if present is None:
            raise _refused(name, "it has no trigger", f"give one of {', '.join(TRIGGERS)}")
        return present.trigger
    key, value = given[0], entry[given[0]]
    if key == "every" and isinstance(value, str):
        seconds = _seconds_of(value)
        if not seconds:
            raise _refused(
                name, "every must be a whole number from 1, or a time above 0", "such as every: 5, every: 30m"
            )
        return Elapsed(seconds)
    if key in ("every", "stagnant"):
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
            raise _refused(name, f"{key} must be a whole number from 1", f"such as {key}: 5")
        return Every(value) if key == "every" else Stagnant(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= _MOST:
        raise _refused(name, f"{key} must be a number above 0", f"such as {key}: 30")
    return Elapsed(float(value) * (60 if key == "minutes" else 1))


def _choice(entry: Mapping[object, object], key: str, default: E, name: str) -> E:
    value, choices = entry.get(key), type(default)
    if value is None:
        return default
    if not isinstance(value, str) or value not in set(choices):
        raise _refused(name, f"{key} must be {' or '.join(choices)}", f"without {key} it is {default}")
    return choices(value)


def _text(entry: Mapping[object, object], key: str, name: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise _refused(name, f"{key} must be text", "quote it")
    return value


def _refused(name: str, why: str, hint: str) -> HeartbeatError:
    return HeartbeatError(f"cannot set the heartbeat {name[:40]!r}: {why}", hint)
