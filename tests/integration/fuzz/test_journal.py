"""The journal over random histories, and under random damage: it says what was decided, or that it is damaged."""

import gzip
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import pytest
from cases import trying
from hypothesis import given, strategies as st
from journal_recorder import RULES, LongRecorder, moment
from moves import DEATH, TIME, TROUBLE, WORK, histories, play
from world import World

from coral.errors import CoralError
from coral.fleet import events as on
from coral.fleet.decide import decide
from coral.fleet.events import Moment
from coral.fleet.run_state import Fleet
from coral.journal import Journal, decisions, fold, published, read_lines, segments
from coral.journal.damage import examine, roll_back
from coral.journal.replay import fold_until, replay

FOLDER = (1, 2)
FAST = next((folder for folder in ("/dev/shm",) if os.access(folder, os.W_OK)), None)  # every line is synced


@contextmanager
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=FAST) as folder:
        yield Path(folder) / "journal"


# --- random histories -----------------------------------------------------------------------------------------------

LONGS = st.sampled_from([1, 1, 2000, 20_000, 8 << 20])
# What becomes of the supervisor between two decisions, now and then.
DEATHS = st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["ends", "torn", "draft", "head"])), max_size=5)


def write_down(world: World, path: Path, long: int, deaths: dict[int, str]) -> Journal:
    """The decisions of a world, written by supervisors of which each goes on from what the one before left."""
    journal = Journal(path, long)
    journal.open_supervision(world.rules, Moment(run_time=0.0, wall_time=""), FOLDER)
    walls = [json.loads(line)["wall"] for line in world.lines if line.endswith(b"\n")]
    for number, (turn, wall) in enumerate(zip(world.log, walls, strict=True)):
        if number in deaths:
            journal.close()
            leave(path, deaths[number])
            journal = Journal(path, long)
            assert journal.recovered.fleet == turn.before
            journal.open_supervision(world.rules, Moment(run_time=turn.clock, wall_time=""), FOLDER)
        journal.record(Moment(run_time=turn.clock, wall_time=wall), turn.events, turn.actions, turn.before, turn.after)
    return journal


def leave(path: Path, how: str) -> None:
    """What a crash may leave behind."""
    newest = segments(path)[-1]
    if how == "torn":
        with newest.open("ab") as file:
            file.write(b'{"sum":"00000000","at":1')
    elif how == "draft":
        (path / ".000999.jsonl").write_bytes(b"half")
    elif how == "head":
        (path / f"{int(newest.name[:6]) + 1:06d}.jsonl").write_bytes(b'{"sum":"0000')


@pytest.mark.slow
@given(histories(WORK, TIME, TROUBLE, DEATH, ["stop"], ["change"] * 3, budgets=True), LONGS, DEATHS, st.randoms())
@trying("journals", "histories")
def test_it_says_what_was_decided_from_any_file_on(history, long, deaths, dice) -> None:
    world = play(history)
    with place() as path:
        write_down(world, path, long, dict(deaths)).close()
        memory, last = fold(path), world.log[-1].after
        assert memory.fleet == last
        for part in ("agents", "pending", "heartbeats"):
            assert list(getattr(memory.fleet, part)) == list(getattr(last, part))
        assert (memory.clock, memory.rules) == (world.log[-1].clock, world.rules)
        assert list(published(path)) == sorted(
            {publication.number: publication for publication in publications(world)}.values(),
            key=lambda attempt: attempt.order,
        )
        found = replay(path)
        assert (found.same, found.agrees) == (len(world.log), True)
        files = segments(path)
        for earlier in files[: dice.randrange(len(files))]:
            earlier.unlink()
        assert fold(path) == memory
        assert replay(path).agrees
        # As it was after any decision: the last one of its time.
        at = dice.choice(world.log).clock
        begun = next(read_lines(path))["at"]
        if at >= begun:
            then = fold_until(path, lambda line: line.get("at", 0.0) > at)
            assert then.fleet == [turn.after for turn in world.log if turn.clock <= at][-1]


def publications(world: World) -> Iterator[object]:
    for turn in world.log:
        for action in turn.actions:
            if hasattr(action, "attempt"):
                yield action.attempt


# --- random damage --------------------------------------------------------------------------------------------------


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


@cache
def written() -> tuple[dict[str, bytes], tuple[Fleet, ...]]:
    """The last files of a journal, the earliest of them packed; and every fleet that was, in order."""
    with place() as path:
        recorder = LongRecorder(path, long=6000)
        recorder.play()
        recorder.go_on(20)
        recorder.journal.close()
        files = {file.name.removesuffix(".gz"): content(file) for file in segments(path)[-3:]}
    first = min(files)
    files[f"{first}.gz"] = gzip.compress(files.pop(first), mtime=0)
    return files, (Fleet(), *recorder.fleets)


BYTES = st.one_of(st.binary(max_size=40), st.sampled_from([b"\n", b"\0" * 4096, b'"', b"9", b"e", b"{}\n"]))
# What is done to a file, at two places of it. Bytes between them are replaced by others; so are lines by lines, of
# which those in between are lost, or there twice.
DAMAGE = st.tuples(
    st.sampled_from(["bytes", "byte", "end", "lines", "line", "lose", "copy"]), st.floats(0, 1), st.floats(0, 1), BYTES
)
Damage = tuple[str, float, float, bytes]


def damaged(data: bytes, damage: Damage) -> bytes:
    kind, *places, some = damage
    if kind in ("bytes", "byte", "end"):
        start = int(places[0] * len(data))
        end = {"byte": start + 1, "end": len(data)}.get(kind, start + int(places[1] * 256))
        return data[:start] + (b"" if kind == "end" else some) + data[end:]
    lines = data.splitlines(keepends=True) or [b""]
    one, other = (int(place * (len(lines) - 1)) for place in places)
    if kind == "lines":
        return b"".join([*lines[:one], *lines[other:]])
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def damage_one(path: Path, files: list[Path], which: float, damage: Damage) -> None:
    file = files[min(int(which * len(files)), len(files) - 1)]
    if damage[0] == "lose":
        file.unlink(missing_ok=True)
    elif damage[0] == "copy" and file.exists():
        (path / f"{int(damage[2] * 255):06d}.jsonl").write_bytes(file.read_bytes())
    elif file.exists():
        file.write_bytes(damaged(file.read_bytes(), damage))


def lay_out(path: Path, files: dict[str, bytes]) -> list[Path]:
    path.mkdir()
    for name, data in files.items():
        (path / name).write_bytes(data)
    return [path / name for name in sorted(files)]


def read_all(path: Path) -> None:
    """Every way to read it."""
    for read in (lambda: list(decisions(path)), lambda: list(published(path)), lambda: replay(path)):
        with suppress(CoralError):
            read()
    for end in (0.5, 3.0, 50.0):
        with suppress(CoralError):
            fold_until(path, lambda line, end=end: line.get("at", 0.0) > end)


def fleet_or_error(path: Path) -> tuple[Fleet | None, CoralError | None]:
    try:
        return fold(path).fleet, None
    except CoralError as error:
        return None, error


def go_on(path: Path) -> None:
    """Another supervisor: what it then writes is what is read."""
    journal = Journal(path, 6000)
    try:
        fleet = journal.recovered.fleet
        if fleet.run.opened:
            for clock in (journal.recovered.clock + 1, journal.recovered.clock + 2):
                after, actions = decide(fleet, (on.Resumed(),), moment(clock % 3000), RULES)
                journal.record(moment(clock % 3000), (on.Resumed(),), actions, fleet, after)
                fleet = after
            assert fold(path).fleet == fleet
    finally:
        journal.close()


@pytest.mark.slow
@given(st.lists(st.tuples(st.floats(0, 1), DAMAGE), min_size=1, max_size=2))
@trying("journals", "damage")
def test_whatever_is_done_to_it_is_noticed_or_makes_no_difference(damages) -> None:
    files, fleets = written()
    with place() as path:
        there = lay_out(path, files)
        for which, damage in damages:
            damage_one(path, there, which, damage)
        read_all(path)
        found, reported = fleet_or_error(path)
        if reported is None:
            # What was lost from the end is lost, as by a crash; what is left was decided once.
            assert found in fleets
            go_on(path)
        else:
            assert str(path) in str(reported)
            assert reported.hint
            with pytest.raises(CoralError):
                Journal(path)
            if rolled_back(path):
                assert fold(path).fleet in fleets
                go_on(path)


def rolled_back(path: Path) -> bool:
    """Whether the journal has a good state. It then has been put in the place of what is damaged, of which every byte
    is kept."""
    before = sorted(file.read_bytes() for file in segments(path))
    try:
        damage = examine(path)
    except CoralError:
        assert sorted(file.read_bytes() for file in segments(path)) == before
        return False
    assert damage is not None
    note = on.RolledBack(file=damage.path.name, line=damage.line, why=damage.why, lines=0, kept="")
    roll_back(path, damage, note, moment(0))
    assert examine(path) is None
    assert fold(path).rolled_back == note
    after = [file.read_bytes() for file in path.iterdir()]
    assert all(data in after for data in before)
    return True


@given(st.dictionaries(st.sampled_from(["000001.jsonl", "000002.jsonl", "000003.jsonl.gz"]), BYTES))
@trying("journals", "no journal")
def test_what_is_no_journal_at_all_is_refused_or_empty(files: dict[str, bytes]) -> None:
    with place() as path:
        lay_out(path, files)
        read_all(path)
        with suppress(CoralError):
            assert fold(path).fleet == Fleet()
