"""Decides again what a journal holds, as an audit, and recovers the state of an earlier time.

Every file is replayed from its own head on, and has to begin with the state that the file before it ended with. After a
difference the replay goes on from the recorded state: each later decision is judged by itself.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from attempts.fields import BAD_DATA
from coral.codec import decode, encode
from coral.errors import CoralError
from coral.fleet.actions import Action
from coral.fleet.decide import decide
from coral.fleet.events import Event, Moment
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal.changes import NUMBERED, PARTS, Plain, apply, decode_fleet, difference, empty
from coral.journal.fold import RecoveredState, copy_of, decision_of, fold_lines, understanding
from coral.journal.lines import Lines, lines_of_files
from coral.journal.segments import number_of

REPORT_EVERY = 256  # decisions


@dataclass(frozen=True, slots=True)
class Difference:
    """One decision that is different when decided again. `recorded`, `again`: the actions of the journal, and of the
    replay; `records`: the names of the records that differ, such as `agents.ann`."""

    file: str
    line: int
    now: Moment
    events: tuple[Event, ...]
    recorded: tuple[Action, ...]
    again: tuple[Action, ...]
    records: tuple[str, ...]


@dataclass(slots=True)
class Replay:
    """The result of a replay. `same`, `different`: numbers of decisions. `heads`: what is wrong with the files' heads:
    a file is missing, or does not begin with the state that the one before it ended with."""

    same: int = 0
    different: int = 0
    events: int = 0
    first: Difference | None = None
    heads: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        return not self.different and not self.heads


def replay(journal: Path, report: Callable[[Replay], None] = lambda _: None, *, last: bool = False) -> Replay:
    """Decide everything again, or only what the `last` file of the journal has. `report` is called every REPORT_EVERY
    decisions with the result so far. CoralError where a decision cannot be made again."""
    found = Replay()
    replayer = _Replayer(found)
    number = 0
    for lines in lines_of_files(journal)[-1 if last else 0 :]:
        if number not in (0, number_of(lines.path) - 1):
            found.heads.append(f"what came after {number:06d}.jsonl is missing")
            replayer.fleet = None
        number = number_of(lines.path)
        for line in lines:
            try:
                replayer.replay_line(line, lines)
            except (*BAD_DATA, AssertionError) as error:
                hint = "replay it with the version that wrote it: " + (", ".join(found.versions) or "not known")
                place = f"{lines.path}: line {lines.number}"
                raise CoralError(f"cannot decide again {place}: {error!r}", hint) from None
            if (count := found.same + found.different) and count % REPORT_EVERY == 0:
                report(found)
    return found


def fold_until(journal: Path, is_past: Callable[[Mapping[str, Any]], bool]) -> RecoveredState | None:
    """Return the state just before the first line for which `is_past` is true; None if that is the first line of
    all."""
    for lines in reversed(lines_of_files(journal)):
        with understanding(lines):
            found = list(takewhile(lambda line: not is_past(line), lines))
            if found:
                return fold_lines(found)
    return None


class _Replayer:
    """Holds the recorded fleet and the fleet that is decided again, side by side."""

    def __init__(self, found: Replay) -> None:
        self._found = found
        self._rules = Rules()
        self.fleet: Fleet | None = None  # before the first line, and after a missing file
        self._recorded: Plain = empty()

    def replay_line(self, line: Mapping[str, Any], lines: Lines) -> None:
        if "version" in line and line["version"] not in self._found.versions:
            self._found.versions.append(line["version"])
        if line.get("rules"):
            self._rules = decode(Rules, line["rules"])
        if "state" in line:
            self._begin(line, lines)
        elif "events" in line:
            self._decide(line, lines)

    def _begin(self, line: Mapping[str, Any], lines: Lines) -> None:
        self._recorded = copy_of(line["state"])
        fleet = decode_fleet(self._recorded)
        if lines.number == 1 and self.fleet not in (None, fleet):
            self._found.heads.append(f"{lines.path.name} does not begin where the file before it ended")
        self.fleet = fleet

    def _decide(self, line: Mapping[str, Any], lines: Lines) -> None:
        recorded = decision_of(line)
        before = self.fleet or Fleet()
        after, actions = decide(before, recorded.events, recorded.now, self._rules)
        apply(self._recorded, recorded.changes)
        changes = difference(before, after)
        records = () if changes == recorded.changes else tuple(self._other_records(after, changes, recorded.changes))
        self._found.events += len(recorded.events)
        if actions == recorded.actions and not records:
            self._found.same += 1
            self.fleet = after
            return
        self._found.different += 1
        self.fleet = decode_fleet(self._recorded)
        if self._found.first is None:
            place = (lines.path.name, lines.number, recorded.now, recorded.events)
            self._found.first = Difference(*place, recorded.actions, actions, records)

    def _other_records(self, after: Fleet, *changes: Plain) -> Iterator[str]:
        """Yield the names of the changed records that differ from the journal's. Compares records, because plain data
        of equal records may differ in form."""
        recorded = decode_fleet(self._recorded)
        if recorded.run != after.run:
            yield "run"
        for part in PARTS:
            old, new = getattr(recorded, part), getattr(after, part)
            for name in dict.fromkeys(name for change in changes for name in change.get(part, {})):
                key = int(name) if part in NUMBERED else name
                if old.get(key) != new.get(key):
                    yield f"{part}.{name}"


def difference_data(found: Difference) -> dict[str, Any]:
    """Return the difference as plain data for programs: actions and events as the journal holds them."""
    now = {"at": found.now.run_time, "wall": found.now.wall_time}
    decided = {name: encode(getattr(found, name)) for name in ("events", "recorded", "again")}
    return {"file": found.file, "line": found.line, **now, **decided, "records": list(found.records)}
