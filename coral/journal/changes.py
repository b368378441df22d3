"""The changes between two fleets, as plain data.

A new record is written whole, with its tag; of a record that was there before, only the fields that differ are written.
"""

from collections.abc import Mapping
from typing import Any

from attempts.standing import Measured
from coral.codec import TAG, decode, encode, encode_changes
from coral.fleet.agent_state import Agent
from coral.fleet.run_state import Fleet, HoldoutScore, Job, PendingAttempt, Run
from heartbeats.heartbeat import Heartbeat

PARTS = ("agents", "pending", "heartbeats", "jobs", "measured", "holdouts")
NUMBERED = ("pending", "jobs", "measured", "holdouts")
Plain = dict[str, Any]


def difference(before: Fleet, after: Fleet) -> Plain:
    """Return the records that were changed, made or dropped between two fleets. A dropped record is None."""
    changes: Plain = {}
    if before.run is not after.run and (run := encode_changes(before.run, after.run)):
        changes["run"] = run
    for part in PARTS:
        old, new = getattr(before, part), getattr(after, part)
        if old is not new and (changed := _changed(old, new)):
            changes[part] = changed
    return changes


def encode_fleet(fleet: Fleet) -> Plain:
    """Return the whole fleet, in the order in which decisions go through it."""
    return {"run": encode(fleet.run), **{part: encode(getattr(fleet, part)) for part in PARTS}}


def empty() -> Plain:
    return encode_fleet(Fleet())


def apply(state: Plain, changes: Mapping[str, Any]) -> None:
    """Make the changes that `difference` found in `state`. KeyError for a change to a record that is not there."""
    if "run" in changes:
        _put(state, "run", changes["run"])
    for part in PARTS:
        held = state[part]
        for name, plain in changes.get(part, {}).items():
            if plain is None:
                held.pop(name, None)
            else:
                _put(held, name, plain)


def decode_fleet(state: Plain) -> Fleet:
    """Return the fleet that `encode_fleet` made `state` from. ValueError says what in it is wrong."""
    return Fleet(
        run=decode(Run, state["run"]),
        agents={name: decode(Agent, plain) for name, plain in state["agents"].items()},
        pending={int(number): decode(PendingAttempt, plain) for number, plain in state["pending"].items()},
        heartbeats={owner: decode(tuple[Heartbeat, ...], plain) for owner, plain in state["heartbeats"].items()},
        jobs={int(number): decode(Job, plain) for number, plain in state["jobs"].items()},
        measured={int(number): decode(Measured, plain) for number, plain in state["measured"].items()},
        holdouts={int(number): decode(HoldoutScore, plain) for number, plain in state["holdouts"].items()},
    )


def _changed(old: Mapping[Any, Any], new: Mapping[Any, Any]) -> Plain:
    changed: Plain = {}
    for key, value in new.items():
        was = old.get(key)
        if was is value:
            continue
        if was is None or isinstance(value, tuple):
            changed[str(key)] = encode(value)
        elif fields := encode_changes(was, value):
            changed[str(key)] = fields
    return changed | {str(key): None for key in old if key not in new}


def _put(held: Plain, name: str, plain: Any) -> None:
    if isinstance(plain, list) or TAG in plain:
        held[name] = plain
    else:
        held[name] = {**held[name], **plain}  # a new dict: the one in the line it came from must not change
