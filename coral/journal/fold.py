"""What a journal says: folded without logic, on plain data that becomes records once, at the end."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from attempts.record import Attempt
from coral.codec import TAG, decode
from coral.errors import CoralError
from coral.fleet.actions import Action, Publish
from coral.fleet.events import Event, Moment
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal.changes import PARTS, Plain, apply, decode_fleet, empty
from coral.journal.lines import Lines
from coral.journal.segments import number_of, segments
from coral.processes.process_table import Identity

NOT_OURS = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)  # what plain data of others may raise
_TO_PARSE = (b'"Publish"', b'"format"')


@dataclass(frozen=True, slots=True)
class Decision:
    """One turn of the loop as it was written down. `changes` leads from one fleet to the next."""

    now: Moment
    events: tuple[Event, ...]
    actions: tuple[Action, ...]
    changes: dict[str, Any]


@dataclass(slots=True)
class RecoveredState:
    """What a journal says when it is folded. `identities`: who was started, as which launch and process."""

    fleet: Fleet = field(default_factory=Fleet)
    clock: float = 0.0
    wall: str = ""
    rules: Rules | None = None
    identities: dict[str, tuple[int, Identity]] = field(default_factory=dict)
    folder: tuple[int, int] | None = None


def fold(journal: Path) -> RecoveredState:
    """Everything the journal says, in its last state: read from its newest file alone."""
    return recover(journal)[0]


def recover(journal: Path) -> tuple[RecoveredState, Lines | None]:
    """What the journal says, and the file that says it: the newest with a whole line in it."""
    files = segments(journal)
    for file in reversed(files):
        lines = Lines(file, may_be_torn=file == files[-1])
        try:
            memory = fold_lines(_from_a_head(lines))
        except NOT_OURS as error:
            raise not_understood(lines, error) from None
        if lines.end:
            return memory, lines
    return RecoveredState(), None


def fold_lines(lines: Iterable[Mapping[str, Any]]) -> RecoveredState:
    memory = RecoveredState()
    state = empty()
    rules: Plain | None = None
    started: dict[str, Any] = {}
    for line in lines:
        memory.clock = max(memory.clock, line.get("at", 0.0))
        memory.wall = line.get("wall", memory.wall)
        if "state" in line:
            state, started = copy_of(line["state"]), {}
        if line.get("rules") is not None:  # begun anew before the first supervision, a file knows of none
            rules = line["rules"]
            device, inode = line["folder"]
            if memory.folder not in (None, (device, inode)):
                started = {}  # a copy: the processes named so far belong to the original
            memory.folder = (device, inode)
        started |= line.get("started", {})
        apply(state, line.get("set", {}))
    memory.rules = None if rules is None else decode(Rules, rules)
    memory.identities = {who: (launch, decode(Identity, plain)) for who, (launch, plain) in started.items()}
    memory.fleet = decode_fleet(state)
    return memory


def copy_of(state: Plain) -> Plain:
    """A state to apply changes to, without changing the line it came from."""
    return {"run": state["run"], **{part: dict(state[part]) for part in PARTS}}


def decisions(journal: Path) -> Iterator[tuple[Rules, Decision]]:
    """The decisions of a journal with the rules each was made by, to be made again and compared."""
    rules = Rules()
    for lines in _files(journal):
        try:
            for line in lines:
                if line.get("rules"):
                    rules = decode(Rules, line["rules"])
                elif "events" in line:
                    yield rules, decision_of(line)
        except NOT_OURS as error:
            raise not_understood(lines, error) from None


def decision_of(line: Mapping[str, Any]) -> Decision:
    events = decode(tuple[Event, ...], line["events"])
    actions = decode(tuple[Action, ...], line["actions"])
    return Decision(Moment(run_time=line["at"], wall_time=line["wall"]), events, actions, line["set"])


def published(journal: Path) -> Iterator[Attempt]:
    """Every attempt that the journal says was published, once each, in order of publication."""
    return _once(line for lines in _files(journal) for line in _understood(lines))


def salvaged(journal: Path) -> Iterator[Attempt]:
    """Those of them that can still be read, whatever is missing or damaged."""
    return _once(line for file in segments(journal) for line in _salvaged_in(Lines(file, may_be_torn=True)))


def _once(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    last = -1
    for attempt in attempts:
        # A supervisor that took over publishes again what the one before may not have finished.
        if attempt.order > last:
            last = attempt.order
            yield attempt


def _understood(lines: Lines) -> Iterator[Attempt]:
    try:
        yield from _published_in(lines)
    except NOT_OURS as error:
        raise not_understood(lines, error) from None


def _salvaged_in(lines: Lines) -> Iterator[Attempt]:
    with contextlib.suppress(CoralError, *NOT_OURS):
        yield from _published_in(lines)


def _published_in(lines: Lines) -> Iterator[Attempt]:
    for raw in lines.raw():
        if lines.number == 1 or any(key in raw for key in _TO_PARSE):
            for plain in lines.parse(raw).get("actions", ()):
                if plain[TAG] == Publish.__name__:
                    yield decode(Attempt, plain["attempt"])


def not_understood(lines: Lines, error: Exception) -> CoralError:
    """Whole, but not as this version writes it."""
    hint = "it was written by another version of coral-fleet, or changed by somebody: look for a backup"
    return CoralError(f"cannot understand {lines.path}, up to line {lines.number}: {error}", hint)


def read_lines(journal: Path) -> Iterator[dict[str, Any]]:
    """The lines of all files of a journal, in their order."""
    for lines in _files(journal):
        yield from lines


def _files(journal: Path) -> Iterator[Lines]:
    files = segments(journal)
    for before, after in pairwise(files):
        if number_of(after) != number_of(before) + 1:
            raise CoralError(f"cannot read {journal}: what came after {before.name} is missing", "look for a backup")
    for file in files:
        yield Lines(file, may_be_torn=file == files[-1])


def _from_a_head(lines: Lines) -> Iterator[dict[str, Any]]:
    for line in lines:
        if lines.number == 1 and number_of(lines.path) > 1 and "state" not in line:
            raise lines.damaged("it should begin with everything that was known")
        yield line
