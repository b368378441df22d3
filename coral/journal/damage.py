"""Finds where a journal is damaged and what of it can be trusted, and puts the trusted part in its place.

Trusted is the last snapshot (the head of a file) that can be read and decoded, with the lines that follow it without a
gap. If a snapshot itself is damaged, the lines of the file before it lead to the same state, so that the lines after it
are trusted too. Lines after a gap cannot be applied: they change records whose state is not known. What such a line
says by itself is read by `lost_lines`. Nothing is removed: the damaged files are kept beside the journal under another
name.
"""

import contextlib
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from attempts.fields import BAD_DATA
from attempts.files import sync_folder
from coral import __version__
from coral.codec import encode
from coral.errors import CoralError
from coral.fleet.events import Moment, RolledBack
from coral.journal.changes import Plain
from coral.journal.fold import RecoveredState, fold_lines, from_a_head, recover
from coral.journal.lines import Lines, follows, seal
from coral.journal.segments import DamageError, number_of, open_segment, segment_path, segments
from coral.journal.writer import ROLLED_BACK, head_of, known_of, plain_identities

HEAD_MARK = b',"state":{"run":{'  # in the first line of a file, as text
KEPT = "damaged-"  # the name of a damaged file begins with this once it is renamed


@dataclass(frozen=True, slots=True)
class Damage:
    """What `examine` found. `path`, `line`, `why`: where and why reading has to stop. `trusted`: the lines of the file
    with this `number`, with which the journal goes on, and the `state` that they lead to. `lost`: the lines after the
    damage that can be read; `unreadable`: how many others there are. `damaged`: the files that are renamed."""

    path: Path
    line: int
    why: str
    number: int
    trusted: tuple[Plain, ...]
    state: RecoveredState
    lost: tuple[Plain, ...]
    unreadable: int
    damaged: tuple[Path, ...]


def examine(journal: Path) -> Damage | None:
    """Find the damage of a journal; None if it can be read. CoralError if another version wrote it, or nothing of it
    can be trusted."""
    try:
        recover(journal)
        return None
    except DamageError as error:
        damaged = error
    files = segments(journal)
    for place in reversed(range(len(files))):
        read = _read(files[place], is_newest=place == len(files) - 1)
        if read.state is not None:
            return _after(files[place:], read, damaged.why)
    raise damaged


def without_end(journal: Path, why: str) -> Damage | None:
    """Describe the damage of a journal that can be read, and of which something else shows that its last lines are
    missing. `why`: what shows it, in words. None if it has no line. How many are missing is not known: one is
    counted."""
    state, read = recover(journal)
    if read is None:
        return None
    number = number_of(read.path)
    files = [file for file in segments(journal) if number_of(file) >= number]
    trusted = tuple(Lines(read.path, may_be_torn=True))
    return Damage(read.path, len(trusted) + 1, why, number, trusted, state, (), 1, tuple(files))


def roll_back(journal: Path, damage: Damage, note: RolledBack, now: Moment) -> None:
    """Replace the damaged files by the trusted lines and a last line with `note`, which says what was done. OSError if
    that cannot be written: then the journal is as before. A crash in between leaves a journal that is found damaged
    again."""
    last = {"at": now.run_time, "wall": now.wall_time, ROLLED_BACK: encode(note)}
    target = segment_path(journal, damage.number)
    unfinished = target.with_name(f".{target.name}")
    with unfinished.open("wb") as file:
        sum = 0
        for line in (*damage.trusted, last):
            data, sum = seal({name: value for name, value in line.items() if name != "sum"}, sum)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    unfinished.chmod(0o600)
    if target in damage.damaged:
        os.link(target, kept_as(target))  # at each moment there is a file of that number
    unfinished.replace(target)
    for path in damage.damaged:
        if path != target:
            path.rename(kept_as(path))
    sync_folder(journal)


def kept_as(path: Path) -> Path:
    return path.with_name(f"{KEPT}{time.time_ns()}-{path.name}")


@dataclass(frozen=True, slots=True)
class _Read:
    """The lines of a file before the first wrong one, and the state that they lead to. `wrong`: the number of the wrong
    line; 0 if none is wrong."""

    lines: tuple[Plain, ...]
    state: RecoveredState | None
    wrong: int


def _read(path: Path, *, is_newest: bool) -> _Read:
    found, is_cut = list[Plain](), False
    try:
        for line in from_a_head(Lines(path, may_be_torn=is_newest)):
            found.append(line)
    except DamageError:
        is_cut = True
    right = found[: _decodable(found)]
    wrong = len(right) + 1 if is_cut or len(right) < len(found) else 0
    return _Read(tuple(right), fold_lines(right) if right else None, wrong)


def _decodable(lines: Sequence[Plain]) -> int:
    """Return how many of the lines, from the first on, can be folded to a state. CoralError if another version has
    written them."""
    if (error := _problem_of(lines)) is None:
        return len(lines)
    versions = {str(line["version"])[:40] for line in lines if "version" in line} - {__version__}
    if versions:
        hint = f"use the version of coral-fleet that wrote it: {', '.join(sorted(versions))}"
        raise CoralError(f"cannot understand the journal: {error}", hint)
    right, wrong = 0, len(lines)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if _problem_of(lines[:middle]) is None:
            right = middle
        else:
            wrong = middle
    return right


def _problem_of(lines: Sequence[Plain]) -> Exception | None:
    try:
        fold_lines(lines)
    except BAD_DATA as error:
        return error
    return None


def _after(files: Sequence[Path], read: _Read, why: str) -> Damage:
    """Return the damage that begins in or after the file that was `read`. `files`: that file, and all after it."""
    assert read.state is not None
    if read.wrong:
        path, line, number, trusted = files[0], read.wrong, number_of(files[0]), read.lines
    else:
        files, number, line = files[1:], number_of(files[0]) + 1, 1
        path, trusted = files[0], _with_tail(read.state, files[0], number)
    lost, unreadable = list[Plain](), 0
    for file in files:
        whole, others = _beyond(file, len(trusted) if number_of(file) == number else 0)
        lost += whole
        unreadable += others
    return Damage(path, line, why, number, trusted, fold_lines(trusted), tuple(lost), unreadable, tuple(files))


def _with_tail(state: RecoveredState, path: Path, number: int) -> tuple[Plain, ...]:
    """Return the head that this file should have, made from `state`, and the lines of the file that follow it without a
    gap."""
    last = Moment(run_time=state.clock, wall_time=state.wall)
    head = head_of(known_of(state), last, plain_identities(state.identities), state.fleet)
    if number_of(path) != number:
        return (head,)
    lines, found = _raw(path), list[Plain]()
    if not lines or HEAD_MARK not in lines[0]:
        return (head,)  # it may be lost: then lines are missing, and those that are there follow something else
    for before, raw in pairwise(lines):
        line = _parsed(path, raw) if follows(raw, before, is_second=not found) else None
        if line is None:
            break
        found.append(line)
    return (head, *found[: _decodable([head, *found]) - 1])


def _beyond(path: Path, count: int) -> tuple[list[Plain], int]:
    """Return the lines after the first `count` that follow the line before them, and how many others there are. The
    first line of a file is left out: it holds a state, and no change."""
    raw, first = _raw(path), max(count, 1)
    found = [
        line
        for place in range(first, len(raw))
        if follows(raw[place], raw[place - 1], is_second=place == 1) and (line := _parsed(path, raw[place]))
    ]
    return found, max(len(raw) - first, 0) - len(found)


def _raw(path: Path) -> list[bytes]:
    """Return the whole lines of a file as bytes, as far as it can be read; an end that a crash cut off is left out."""
    lines = list[bytes]()
    with contextlib.suppress(CoralError), open_segment(path) as file:
        for raw in file:
            lines.append(raw)
    return [raw for raw in lines if raw.endswith(b"\n")]


def _parsed(path: Path, raw: bytes) -> Plain | None:
    with contextlib.suppress(CoralError):
        return Lines(path, may_be_torn=False).parse(raw)
    return None
