"""Reads a journal: folds its lines without logic, on plain data that becomes records once, at the end."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from attempts.fields import BAD_DATA
from attempts.record import Attempt
from coral.codec import TAG, decode
from coral.errors import CoralError
from coral.fleet.actions import Action, Publish
from coral.fleet.events import Event, Moment, RolledBack
from coral.fleet.members import Member
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal.changes import PARTS, Plain, apply, decode_fleet, empty
from coral.journal.lines import Lines, lines_of_files
from coral.journal.segments import DamageError, number_of, segments
from coral.processes.process_tree import Identity
from workspace.layout import Layout

POISONED_HINT = (
    "it was written by another version of coral-fleet, or changed by somebody: if by this version, `coral resume` "
    "goes on from the last good state before it"
)
_TO_PARSE = (b'"Publish"', b'"format"')


@dataclass(frozen=True, slots=True)
class Decision:
    """One recorded turn of the loop. `changes` leads from the fleet before it to the fleet after it."""

    now: Moment
    events: tuple[Event, ...]
    actions: tuple[Action, ...]
    changes: dict[str, Any]


@dataclass(slots=True)
class RecoveredState:
    """The state that a journal folds to. `clock`, `wall`: the time of its last line. `identities`: by process key, the
    processes that were started, each with its launch. `folder`: device and inode of the run's folder. `files`: the
    digests of the task's files as the last supervisor found them (see `coral.runs.task_files`); `expected`: the digests
    that a change of the task announced since. `rolled_back`: the damage that this state was saved from, until a
    supervisor has decided on it."""

    fleet: Fleet = field(default_factory=Fleet)
    clock: float = 0.0
    wall: str = ""
    rules: Rules | None = None
    identities: dict[str, tuple[int, Identity]] = field(default_factory=dict)
    folder: tuple[int, int] | None = None
    files: dict[str, str] = field(default_factory=dict)
    expected: dict[str, str] = field(default_factory=dict)
    rolled_back: RolledBack | None = None

    @property
    def members(self) -> Mapping[str, Member]:
        """The agents that were added or moved. Agents whose decision was lost by a damage are among them, because they
        may submit."""
        lost = self.rolled_back.members if self.rolled_back else {}
        return {**self.fleet.run.members, **lost}


@contextlib.contextmanager
def understanding(lines: Lines) -> Iterator[None]:
    """Turn errors about lines that have the right checksum but impossible contents into a CoralError with file and
    line."""
    try:
        yield
    except BAD_DATA as error:
        message = f"cannot understand {lines.path}, up to line {lines.number}: {error}"
        raise DamageError(message, POISONED_HINT, why=f"what it says cannot be: {error}") from None


def fold(journal: Path) -> RecoveredState:
    """Return the last state in a journal, read from its newest file alone."""
    return recover(journal)[0]


def recover(journal: Path) -> tuple[RecoveredState, Lines | None]:
    """Return the last state, and the file that it was read from: the newest with a whole line in it; None if there is
    none."""
    for lines in reversed(lines_of_files(journal)):
        with understanding(lines):
            state = fold_lines(from_a_head(lines))
        if lines.end:
            return state, lines
    return RecoveredState(), None


def fold_lines(lines: Iterable[Mapping[str, Any]]) -> RecoveredState:
    recovered = RecoveredState()
    state = empty()
    rules: Plain | None = None
    started: dict[str, Any] = {}
    rolled_back: Plain | None = None
    for line in lines:
        recovered.clock = max(recovered.clock, line.get("at", 0.0))
        recovered.wall = line.get("wall", recovered.wall)
        if "state" in line:
            state, started = copy_of(line["state"]), {}
        if line.get("rules") is not None:  # a file that was begun again before the first supervision has none
            rules = line["rules"]
            device, inode = line["folder"]
            if recovered.folder not in (None, (device, inode)):
                started = {}  # a copy: the processes named so far belong to the original
            recovered.folder, recovered.files = (device, inode), line.get("files", {})
        recovered.expected = line.get("expected", recovered.expected)
        rolled_back = line.get("rolled_back", None if "events" in line else rolled_back)
        started |= line.get("started", {})
        apply(state, line.get("set", {}))
    recovered.rules = None if rules is None else decode(Rules, rules)
    recovered.identities = {key: (launch, decode(Identity, plain)) for key, (launch, plain) in started.items()}
    recovered.rolled_back = None if rolled_back is None else decode(RolledBack, rolled_back)
    recovered.fleet = decode_fleet(state)
    return recovered


def copy_of(state: Plain) -> Plain:
    """Return a copy of a state, so that changes applied to it do not change the line it came from."""
    return {"run": state["run"], **{part: dict(state[part]) for part in PARTS}}


def decisions(journal: Path) -> Iterator[tuple[Rules, Decision]]:
    """Yield the decisions of a journal in their order, each with the rules that its supervisor had."""
    rules = Rules()
    for lines in _complete(journal):
        with understanding(lines):
            for line in lines:
                if line.get("rules"):
                    rules = decode(Rules, line["rules"])
                elif "events" in line:
                    yield rules, decision_of(line)


def decision_of(line: Mapping[str, Any]) -> Decision:
    events = decode(tuple[Event, ...], line["events"])
    actions = decode(tuple[Action, ...], line["actions"])
    return Decision(Moment(run_time=line["at"], wall_time=line["wall"]), events, actions, line["set"])


def published(journal: Path) -> Iterator[Attempt]:
    """Return every published attempt in the journal, once each, in order of publication. CoralError at the first
    damage."""
    return _once(attempt for lines in _complete(journal) for attempt in _published_in(lines))


def salvaged(journal: Path) -> Iterator[Attempt]:
    """Return the published attempts that can still be read: in each file those before its first damage."""
    return _once(attempt for file in segments(journal) for attempt in _salvaged_in(Lines(file, may_be_torn=True)))


def _once(attempts: Iterable[Attempt]) -> Iterator[Attempt]:
    last = -1
    for attempt in attempts:
        # A supervisor that took over publishes again what the one before may not have finished.
        if attempt.order > last:
            last = attempt.order
            yield attempt


def _salvaged_in(lines: Lines) -> Iterator[Attempt]:
    with contextlib.suppress(CoralError):
        yield from _published_in(lines)


def _published_in(lines: Lines) -> Iterator[Attempt]:
    with understanding(lines):
        for raw in lines.raw():
            if lines.number == 1 or any(key in raw for key in _TO_PARSE):
                for plain in lines.parse(raw).get("actions", ()):
                    if plain[TAG] == Publish.__name__:
                        yield decode(Attempt, plain["attempt"])


def read_lines(journal: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of all files of a journal, in their order."""
    for lines in _complete(journal):
        yield from lines


def _complete(journal: Path) -> Iterator[Lines]:
    files = lines_of_files(journal)
    for before, after in pairwise(file.path for file in files):
        if number_of(after) != number_of(before) + 1:
            raise CoralError(f"cannot read {journal}: what came after {before.name} is missing", "look for a backup")
    yield from files


def from_a_head(lines: Lines) -> Iterator[dict[str, Any]]:
    for line in lines:
        if lines.number == 1 and number_of(lines.path) > 1 and "state" not in line:
            raise lines.damaged("it should begin with everything that was known")
        yield line


def has_begun(layout: Layout) -> bool:
    """Return whether a supervisor has decided anything in this run; if not, the run can be replaced without a loss."""
    return bool(segments(layout.journal)) and fold(layout.journal).fleet.run.opened


def has_ended(layout: Layout) -> bool:
    """Return whether the run never began or was ended in order, so that no process of it is running."""
    return not segments(layout.journal) or bool(fold(layout.journal).fleet.run.finished)
