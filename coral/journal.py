"""The run's memory: what happened, what was decided, and which records changed; appended, and folded without logic.

A line is on the disk before anything in it is done. The last line may be torn by a crash: it is cut off before the
next is written, and nothing that was only in it had been done.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from attempts.record import Attempt
from coral import __version__
from coral.codec import TAG, decode, encode
from coral.errors import CoralError
from coral.fleet.actions import Action, Publish
from coral.fleet.events import Event, Moment
from coral.fleet.policy import Rules
from coral.fleet.state import Agent, Fleet, Pending, Run
from coral.process import Identity
from heartbeats.heartbeat import Heartbeat

FORMAT = 1
_PUBLISH = b'"Publish"'


@dataclass(frozen=True, slots=True)
class Decision:
    """One turn of the loop as it was written down. `changes` leads from one fleet to the next."""

    now: Moment
    events: tuple[Event, ...]
    actions: tuple[Action, ...]
    changes: dict[str, Any]


@dataclass(slots=True)
class Memory:
    """What a journal says when it is folded. `identities`: who was started, as which launch and process."""

    fleet: Fleet = field(default_factory=Fleet)
    clock: float = 0.0
    rules: Rules | None = None
    identities: dict[str, tuple[int, Identity]] = field(default_factory=dict)
    folder: tuple[int, int] | None = None


class Journal:
    """The journal of one run, opened for appending by the one who holds the run's lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        _cut_torn_tail(self._file)

    def open_supervision(self, rules: Rules, now: Moment, folder: tuple[int, int]) -> None:
        """The first line of every supervisor: by which rules it decides, and in which folder."""
        line = {"format": FORMAT, "version": __version__, "rules": encode(rules), "folder": list(folder)}
        self._append({**line, "at": now.clock, "wall": now.wall}, durable=True)

    def record(
        self, now: Moment, events: Iterable[Event], actions: Iterable[Action], before: Fleet, after: Fleet
    ) -> None:
        """One decision. OSError means that it is not written, and nothing of it may be done."""
        plain_events, plain_actions = encode(tuple(events)), encode(tuple(actions))
        line = {"at": now.clock, "wall": now.wall, "events": plain_events, "actions": plain_actions}
        # A mere sign of life may be lost with the machine; everything that leads to an action may not.
        self._append({**line, "set": difference(before, after)}, durable=bool(plain_actions))

    def record_started(self, started: Mapping[str, tuple[int, Identity]]) -> None:
        """Who was started, before any of them is let go."""
        self._append({"started": {who: [launch, encode(each)] for who, (launch, each) in started.items()}}, True)

    def close(self) -> None:
        os.close(self._file)

    def _append(self, line: Mapping[str, Any], durable: bool) -> None:
        data = json.dumps(line, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, data)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes were written")
            if durable:
                os.fsync(self._file)
        except OSError:
            os.ftruncate(self._file, size)
            raise


def fold(path: Path) -> Memory:
    """Everything the journal says, in its last state."""
    return fold_lines(read_lines(path))


def fold_lines(lines: Iterable[Mapping[str, Any]]) -> Memory:
    memory = Memory()
    agents: dict[str, Agent] = {}
    pending: dict[int, Pending] = {}
    heartbeats: dict[str, tuple[Heartbeat, ...]] = {}
    run = Run()
    for line in lines:
        memory.clock = max(memory.clock, line.get("at", 0.0))
        if "rules" in line:
            memory.rules = decode(Rules, line["rules"])
            folder = (line["folder"][0], line["folder"][1])
            if memory.folder not in (None, folder):
                # A copy: the processes named so far belong to the original.
                memory.identities.clear()
            memory.folder = folder
        for who, (launch, identity) in line.get("started", {}).items():
            memory.identities[who] = (launch, decode(Identity, identity))
        changes = line.get("set", {})
        if "run" in changes:
            run = decode(Run, changes["run"])
        _apply(agents, changes.get("agents", {}), str, Agent)
        _apply(pending, changes.get("pending", {}), int, Pending)
        _apply(heartbeats, changes.get("heartbeats", {}), str, tuple[Heartbeat, ...])
    memory.fleet = Fleet(run=run, agents=agents, pending=pending, heartbeats=heartbeats)
    return memory


def decisions(path: Path) -> Iterator[tuple[Rules, Decision]]:
    """The decisions of a journal with the rules each was made by, to be made again and compared."""
    rules = Rules()
    for line in read_lines(path):
        if "rules" in line:
            rules = decode(Rules, line["rules"])
        elif "events" in line:
            events = decode(tuple[Event, ...], line["events"])
            actions = decode(tuple[Action, ...], line["actions"])
            now = Moment(clock=line["at"], wall=line["wall"])
            yield rules, Decision(now=now, events=events, actions=actions, changes=line["set"])


def published(path: Path) -> Iterator[Attempt]:
    """Every attempt that the journal says was published, once each, in order of publication."""
    last = -1
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if _PUBLISH in raw and (line := _read(path, number, raw)) is not None:
                for plain in line.get("actions", ()):
                    # A supervisor that took over publishes again what the one before may not have finished.
                    if plain[TAG] == Publish.__name__ and plain["attempt"]["order"] > last:
                        attempt = decode(Attempt, plain["attempt"])
                        last = attempt.order
                        yield attempt


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a journal. A torn last one is passed over; a broken one in the middle is an error."""
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if (line := _read(path, number, raw)) is not None:
                yield line


def _read(path: Path, number: int, raw: bytes) -> dict[str, Any] | None:
    if not raw.endswith(b"\n"):
        return None
    try:
        line: dict[str, Any] = json.loads(raw)
    except ValueError as error:
        hint = "copy the run folder, then cut the journal before that line to go on from there"
        raise CoralError(f"cannot read {path}: line {number} is damaged: {error}", hint) from None
    if line.get("format", FORMAT) > FORMAT:
        raise CoralError(f"cannot read {path}: it was written by a newer version", "upgrade coral-fleet")
    return line


def difference(before: Fleet, after: Fleet) -> dict[str, Any]:
    """The records that were replaced, made or dropped between two fleets, as plain data."""
    changes: dict[str, Any] = {}
    if before.run is not after.run:
        changes["run"] = encode(after.run)
    for part in ("agents", "pending", "heartbeats"):
        old, new = getattr(before, part), getattr(after, part)
        changed: dict[str, Any] = {str(key): encode(held) for key, held in new.items() if old.get(key) is not held}
        changed |= {str(key): None for key in old if key not in new}
        if changed:
            changes[part] = changed
    return changes


def _apply(held: dict[Any, Any], changes: Mapping[str, Any], key: type, kind: Any) -> None:
    for name, plain in changes.items():
        if plain is None:
            held.pop(key(name), None)
        else:
            held[key(name)] = decode(kind, plain)


def _cut_torn_tail(file: int) -> None:
    size = os.fstat(file).st_size
    end = size
    while end > 0:
        start = max(end - 65536, 0)
        found = os.pread(file, end - start, start).rfind(b"\n")
        if found >= 0:
            end = start + found + 1
            break
        end = start
    if end != size:
        os.ftruncate(file, end)
