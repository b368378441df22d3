"""A damaged journal goes on from its last good state: every byte of it flipped, lines lost, snapshots poisoned."""

import json
import shutil
from pathlib import Path

import pytest
from journal_recorder import JournalRecorder, LongRecorder, moment

from coral.errors import CoralError
from coral.fleet import events as on
from coral.journal import Journal, fold, segments
from coral.journal.damage import KEPT, Damage, examine, roll_back
from coral.journal.lines import seal
from coral.journal.replay import replay

NOW = moment(900)


@pytest.fixture
def recorder(tmp_path) -> JournalRecorder:
    made = JournalRecorder(tmp_path / "journal")
    made.play()
    return made


@pytest.fixture
def long(tmp_path) -> LongRecorder:
    """Of three files or more, each of which begins with a snapshot."""
    made = LongRecorder(tmp_path / "journal", long=6000)
    made.play()
    made.go_on(21)
    made.journal.close()
    assert len(segments(made.journal.path)) >= 3
    return made


def note(damage: Damage) -> on.RolledBack:
    return on.RolledBack(file=damage.path.name, line=damage.line, why=damage.why, lines=len(damage.lost), kept=KEPT)


def saved(path: Path) -> Damage:
    damage = examine(path)
    assert damage is not None
    roll_back(path, damage, note(damage), NOW)
    return damage


def resealed(lines: list[dict]) -> bytes:
    data, sum = b"", 0
    for line in lines:
        piece, sum = seal({name: held for name, held in line.items() if name != "sum"}, sum)
        data += piece
    return data


def parsed(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_journal_that_is_whole_or_torn_by_a_crash_is_not_damaged(recorder: JournalRecorder, tmp_path) -> None:
    path = recorder.journal.path
    assert examine(path) is None
    assert examine(tmp_path / "none") is None
    with segments(path)[-1].open("ab") as file:
        file.write(b'{"sum":"00000000","at":1')
    assert examine(path) is None


@pytest.mark.parametrize("line", [3, 5, 8])
def test_a_flipped_byte_takes_the_run_back_to_the_line_before_and_the_file_is_kept(
    recorder: JournalRecorder, line: int
) -> None:
    (file,) = segments(recorder.journal.path)
    lines = file.read_bytes().splitlines(keepends=True)
    place = sum(map(len, lines[: line - 1])) + 40
    spoiled = bytearray(file.read_bytes())
    spoiled[place] ^= 1
    file.write_bytes(bytes(spoiled))
    damage = saved(recorder.journal.path)
    assert (damage.path.name, damage.line, damage.unreadable) == ("000001.jsonl", line, 1)
    assert damage.why == "it is not as it was written"
    # What comes after follows the damaged line, and says for itself what happened.
    assert len(damage.lost) == len(lines) - line
    again = fold(recorder.journal.path)
    assert again.fleet == damage.state.fleet
    assert again.rolled_back == note(damage)
    (kept,) = recorder.journal.path.glob(f"{KEPT}*")
    assert kept.read_bytes() == bytes(spoiled)
    assert file.read_bytes().startswith(b"".join(lines[: line - 1]))
    assert replay(recorder.journal.path).agrees
    assert examine(recorder.journal.path) is None


def test_what_was_saved_is_told_to_one_decision_and_no_other(recorder: JournalRecorder) -> None:
    recorder.journal.close()
    (file,) = segments(recorder.journal.path)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([*lines[:5], b"{}\n", *lines[5:]]))
    damage = saved(recorder.journal.path)
    told = note(damage)
    for _ in range(2):  # a supervisor that dies before it has decided, and one that begins another file
        journal = Journal(recorder.journal.path)
        assert journal.recovered.rolled_back == told
        journal.open_supervision(recorder.rules, NOW, (3, 14))
        journal.begin_next()
        journal.close()
    recorder.journal = Journal(recorder.journal.path)
    recorder.fleet = recorder.journal.recovered.fleet
    recorder.decide(901, on.Resumed(), told)
    assert fold(recorder.journal.path).rolled_back is None
    recorder.journal.begin_next()
    assert fold(recorder.journal.path).rolled_back is None
    assert replay(recorder.journal.path).agrees


@pytest.mark.parametrize("where", ["sum", "text", "poisoned", "missing"])
def test_a_poisoned_snapshot_loses_nothing_where_the_file_before_it_is_whole(long: LongRecorder, where: str) -> None:
    newest = segments(long.journal.path)[-1]
    spoiled = bytearray(newest.read_bytes())
    if where == "poisoned":  # its checksum is right, and its state is none
        head, *rest = parsed(newest)
        head["state"]["run"]["next_number"] = {"is": "Agent"}
        head["state"]["agents"]["ann"]["phase"] = "flying"
        spoiled = bytearray(resealed([head, *rest]))
    elif where == "missing":
        spoiled = bytearray(b"\n") + spoiled[spoiled.index(b"\n") + 1 :]
    else:
        spoiled[10 if where == "sum" else 200] ^= 1
    newest.write_bytes(bytes(spoiled))
    with pytest.raises(CoralError):
        fold(long.journal.path)
    damage = saved(long.journal.path)
    assert (damage.path, damage.line) == (newest, 1)
    if where == "missing":  # of the second line, nobody knows what came before it
        assert damage.state.fleet in long.fleets
    else:
        assert damage.state.fleet == long.fleet
        assert (damage.lost, damage.unreadable) == ((), 0)
    assert fold(long.journal.path).fleet == damage.state.fleet
    assert replay(long.journal.path).agrees
    (kept,) = long.journal.path.glob(f"{KEPT}*")
    assert kept.read_bytes() == bytes(spoiled)


def test_a_line_whose_change_cannot_be_is_left_out_with_what_came_after(long: LongRecorder) -> None:
    newest = segments(long.journal.path)[-1]
    lines = parsed(newest)
    place = next(place for place, line in enumerate(lines) if place > 1 and line.get("set"))
    lines[place]["set"] = {"agents": {"nobody": {"crashes": 1}}}
    newest.write_bytes(resealed(lines))
    damage = saved(long.journal.path)
    assert (damage.path, damage.line) == (newest, place + 1)
    assert damage.state.fleet in long.fleets
    assert replay(long.journal.path).agrees


def test_where_several_snapshots_are_damaged_it_goes_on_from_the_one_before_them(long: LongRecorder) -> None:
    files = segments(long.journal.path)
    for file in files[-2:]:
        file.write_bytes(b"#" + file.read_bytes() if file.suffix != ".gz" else b"no gzip")
    damage = saved(long.journal.path)
    assert damage.damaged[-1] == files[-1]
    assert fold(long.journal.path).fleet == damage.state.fleet
    assert damage.state.fleet in long.fleets
    assert replay(long.journal.path).agrees
    assert len(list(long.journal.path.glob(f"{KEPT}*"))) == 2


def test_a_death_on_the_way_is_made_good_by_the_next_resume(long: LongRecorder, monkeypatch) -> None:
    path, (*_, packed, newest) = long.journal.path, segments(long.journal.path)
    packed.unlink()
    packed.with_name(packed.name.removesuffix(".gz")).write_bytes(b"#\n")
    newest.write_bytes(b"#\n")
    damage = examine(path)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    for step in ("link", "replace", "rename"):
        for file in list(path.iterdir()):
            file.unlink()
        for name, data in before.items():
            (path / name).write_bytes(data)
        with monkeypatch.context() as patch:
            patch.setattr(*((f"os.{step}",) if step == "link" else (Path, step)), raise_killed)
            with pytest.raises(KeyboardInterrupt):
                roll_back(path, damage, note(damage), NOW)
        again = examine(path)
        if again is not None:
            roll_back(path, again, note(again), NOW)
        assert fold(path).fleet == damage.state.fleet
        assert fold(path).rolled_back is not None


def raise_killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_of_another_version_or_without_a_good_state_nothing_is_touched(recorder: JournalRecorder) -> None:
    (file,) = segments(recorder.journal.path)
    lines = parsed(file)
    whole = file.read_bytes()
    for change, why in (
        ({"format": 5}, "its format is 5"),
        ({"version": "99.0", "rules": {"is": "Rules", "flying": 1}}, "cannot understand the journal"),
    ):
        file.write_bytes(resealed([{**lines[0], **change}, *lines[1:]]))
        with pytest.raises(CoralError, match=why):
            examine(recorder.journal.path)
    file.write_bytes(b"#" + whole)
    with pytest.raises(CoralError, match="line 1 is damaged"):
        examine(recorder.journal.path)
    assert file.read_bytes() == b"#" + whole
    shutil.rmtree(recorder.journal.path)
