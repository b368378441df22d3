"""A heartbeat as people and agents write it: `name`, one trigger, and what differs from what is in force.

What an entry leaves out stays as it is, so that retiming a heartbeat is never taken for a change of its scope or words.
"""

from collections.abc import Mapping
from typing import Any

from heartbeats.heartbeat import BUILT_IN, Delivery, Heartbeat, HeartbeatError, Scope, find
from heartbeats.trigger import Elapsed, Every, Stagnant, Trigger

TRIGGERS = ("every", "stagnant", "minutes", "seconds")
KEYS = ("name", *TRIGGERS, "scope", "delivery", "prompt")
_MOST = 10**9


def from_entry(entry: object, current: tuple[Heartbeat, ...] = BUILT_IN) -> Heartbeat:
    """The heartbeat that an entry asks for, over the one of that name. HeartbeatError says what is wrong with it."""
    if not isinstance(entry, Mapping):
        raise HeartbeatError("cannot read a heartbeat: it is no mapping", "write name, and every, stagnant or minutes")
    name = _text(entry, "name", "")
    for key in entry:
        if key not in KEYS:
            raise _refused(name, f"there is no key {str(key)[:40]!r}", f"there are: {', '.join(KEYS)}")
    present = find(current, name) or find(BUILT_IN, name)
    trigger = _trigger(entry, name, present)
    return Heartbeat(
        name=name,
        trigger=trigger,
        scope=Scope(_choice(entry, "scope", name, tuple(Scope), present.scope if present else Scope.OWN)),
        delivery=Delivery(
            _choice(entry, "delivery", name, tuple(Delivery), present.delivery if present else Delivery.INTERRUPT)
        ),
        prompt=_text(entry, "prompt", name) or (present.prompt if present else ""),
        protected=present.protected if present else False,
        by=present.by if present else "built-in",
    )


def to_dict(heartbeat: Heartbeat) -> dict[str, object]:
    """All of a heartbeat as plain data, readable for people."""
    trigger: dict[str, object]
    match heartbeat.trigger:
        case Every(n):
            trigger = {"every": n}
        case Stagnant(n):
            trigger = {"stagnant": n}
        case Elapsed(seconds):
            trigger = {"seconds": seconds}
    return {
        "name": heartbeat.name,
        **trigger,
        "scope": heartbeat.scope.value,
        "delivery": heartbeat.delivery.value,
        "prompt": heartbeat.prompt,
        "protected": heartbeat.protected,
        "by": heartbeat.by,
    }


def heartbeat_from_dict(data: Mapping[str, object]) -> Heartbeat:
    """What `to_dict` gave. For files that the supervisor wrote itself: it believes `protected` and `by`."""
    entry = {key: value for key, value in data.items() if key not in ("protected", "by")}
    plain = from_entry(entry, ())
    return Heartbeat(
        name=plain.name,
        trigger=plain.trigger,
        scope=plain.scope,
        delivery=plain.delivery,
        prompt=plain.prompt,
        protected=data.get("protected") is True,
        by=_text(data, "by", plain.name),
    )


def _trigger(entry: Mapping[object, object], name: str, present: Heartbeat | None) -> Trigger:
    given = [key for key in TRIGGERS if entry.get(key) is not None]
    if len(given) > 1:
        raise _refused(name, f"it has {' and '.join(given)}", "a heartbeat has one trigger")
    if not given:
        if present is None:
            raise _refused(name, "it has no trigger", f"give one of {', '.join(TRIGGERS)}")
        return present.trigger
    key, value = given[0], entry[given[0]]
    whole = isinstance(value, int) and not isinstance(value, bool)
    if key in ("every", "stagnant"):
        if not isinstance(value, int) or not whole or not 1 <= value <= _MOST:
            raise _refused(name, f"{key} must be a whole number from 1", f"such as {key}: 5")
        return Every(value) if key == "every" else Stagnant(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= _MOST:
        raise _refused(name, f"{key} must be a number above 0", f"such as {key}: 30")
    return Elapsed(float(value) * (60 if key == "minutes" else 1))


def _choice(entry: Mapping[object, object], key: str, name: str, choices: tuple[str, ...], default: str) -> str:
    value = entry.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or value not in choices:
        raise _refused(name, f"{key} must be {' or '.join(choices)}", f"without {key} it is {default}")
    return value


def _text(entry: Mapping[Any, object], key: str, name: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise _refused(name, f"{key} must be text", "quote it")
    return value


def _refused(name: str, why: str, hint: str) -> HeartbeatError:
    return HeartbeatError(f"cannot set the heartbeat {name[:40]!r}: {why}", hint)
