"""A supervisor is killed and its journal is damaged: `coral resume` goes on from the last good state, and says so."""

import contextlib
import json
import re
import time
from pathlib import Path

import pytest
from real_runs import TRY, coral_process, tries, wait_until
from survival import assert_attempts_are_whole

from coral.journal import Journal, segments
from coral.journal.damage import KEPT
from coral.supervisor.lock import hold_lock, holder

pytestmark = pytest.mark.slow  # some ten seconds each: whole runs, and a resume by the command line

COUNTING = [{"repeat": {"steps": TRY}}]
OFTEN = ("run.poll_seconds=0.2",)


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def resumed(run, *words: str):
    return coral_process("resume", "--run", str(run.layout.root), *words, "--detach")


def stopped(run) -> None:
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    wait_until(lambda: holder(run.layout.lock) is None, what="the end of the supervisor")
    assert run.left() == []


def by_number(run):
    return {attempt.number: attempt for attempt in run.attempts()}


def alive_launches(run, agent: str) -> set[bytes]:
    """The tags of an agent's launches that have a process."""
    found = set[bytes]()
    for pid in run.left():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            tags = re.findall(rb"CORAL_LAUNCH=[^/\0]*/([^/\0]*)/([0-9]+)", Path(f"/proc/{pid}/environ").read_bytes())
            found |= {number for name, number in tags if name == agent.encode()}
    return found


def alerts(run) -> list[str]:
    return [event["text"] for event in run.events("alert")]


def test_a_flipped_byte_is_rolled_back_and_what_was_published_is_there_once(start):
    run = start(COUNTING, overrides=OFTEN)
    run.wait_for_attempts(6)
    run.kill()
    before = {attempt.number: attempt for attempt in run.attempts()}
    (file,) = segments(run.layout.journal)
    lines = file.read_bytes().splitlines(keepends=True)
    # Early on, in a line that publishes nothing: what agents did since then is known from the lines after it.
    line = next(
        place for place, line in enumerate(lines) if place > 20 and b'"Publish"' not in line and b'"events"' in line
    )
    spoiled = flipped(file.read_bytes(), sum(map(len, lines[:line])) + 30)
    file.write_bytes(spoiled)
    done = resumed(run)
    assert done.returncode == 0, done.stderr
    assert f"the journal is damaged at line {line + 1} of 000001.jsonl" in done.stderr
    assert "the run goes on from the last good state" in done.stderr
    run.wait_for_attempts(len(before) + 3)
    stopped(run)
    (kept,) = run.layout.journal.glob(f"{KEPT}*")
    assert kept.read_bytes() == spoiled
    after = {attempt.number: attempt for attempt in run.attempts()}
    assert {number: after[number] for number in before} == before
    assert_attempts_are_whole(run, run.fleet())
    assert [text for text in alerts(run) if "the journal was damaged" in text] == alerts(run)
    assert len(alerts(run)) == 1
    assert list(run.layout.attempts.glob(".*.foreign-*")) == []
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0


@pytest.mark.parametrize("zeroed", [False, True])
def test_a_journal_without_its_end_starts_no_agent_twice_and_gives_no_number_twice(start, zeroed: bool):
    """As after a disk that lost what it had promised to keep, or in a copy that was made of a run at work."""
    run = start([*tries(1, 2), "hang"], overrides=OFTEN)
    wait_until(lambda: len(run.prompts("agent-1")) == 3, what="a third launch")
    run.kill()
    before = by_number(run)
    (file,) = segments(run.layout.journal)
    data = file.read_bytes()
    place = data.rindex(b"\n", 0, data.rindex(b'"Accept"')) + 1
    file.write_bytes(data[:place] + (b"\0" * (len(data) - place) if zeroed else b""))
    if zeroed:
        done = coral_process("stop", "--run", str(run.layout.root))
        assert "its processes (1 launch) were ended" in done.stderr
        assert run.left() == []
    done = resumed(run)
    assert "it ends before launch 3 of agent-1" in done.stderr
    assert "only the ledger, where agents could write, has #2" in done.stderr
    assert resumed(run, "--yes").returncode == 0
    wait_until(lambda: len(run.prompts("agent-1")) == 4, what="a fourth launch")
    assert len(alive_launches(run, "agent-1")) == 1
    stopped(run)
    assert by_number(run) == before
    assert_attempts_are_whole(run, run.fleet())
    (alert,) = alerts(run)
    assert "the journal was damaged" in alert


def test_a_poisoned_snapshot_is_rolled_back_and_nothing_is_lost(start):
    run = start(COUNTING, overrides=OFTEN)
    run.wait_for_attempts(3)
    run.kill()
    with hold_lock(run.layout.lock):
        journal = Journal(run.layout.journal)
        fleet = journal.recovered.fleet
        journal.begin_next()
        journal.close()
    newest = segments(run.layout.journal)[-1]
    newest.write_bytes(flipped(newest.read_bytes(), newest.read_bytes().index(b'"state"') + 100))
    done = resumed(run)
    assert done.returncode == 0, done.stderr
    assert "line 1 of 000002.jsonl" in done.stderr
    assert "nothing of it is lost" in done.stderr
    run.wait_for_attempts(fleet.run.order + 2)
    stopped(run)
    assert_attempts_are_whole(run, run.fleet())
    (alert,) = alerts(run)
    assert "nothing is lost" in alert


def test_an_agent_that_was_added_after_the_damage_is_in_the_fleet_with_all_that_it_handed_in(start):
    run = start(COUNTING, overrides=OFTEN)
    run.wait_for_attempts(2)
    (file,) = segments(run.layout.journal)
    before = len(file.read_bytes().splitlines())
    assert coral_process("agent", "add", "--name", "late", "--run", str(run.layout.root)).returncode == 0
    wait_until(lambda: sum(one.agent == "late" for one in run.attempts()) >= 2, what="two attempts of the new agent")
    run.kill()
    last = max((one for one in run.attempts() if one.agent == "late"), key=lambda one: one.number)
    id = f"0{time.time_ns()}"
    waits = {"id": id, "commit": last.commit, "tree": last.tree, "title": "it waits", "kind": "real"}
    place = run.layout.attempts / "inbox" / "late" / f"{id}.json"
    place.write_text(json.dumps({**waits, "wait": 0, "submitted_at": "now"}))
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(flipped(file.read_bytes(), sum(map(len, lines[:before])) + 30))
    done = resumed(run)
    assert done.returncode == 0, done.stderr
    wait_until(lambda: id in {one.submission for one in run.attempts()}, what="the attempt that waited")
    stopped(run)
    assert_attempts_are_whole(run, run.fleet(), retries=True)
    assert [text for text in alerts(run) if "the journal was damaged" in text] == alerts(run)
    assert coral_process("replay", "--run", str(run.layout.root)).returncode == 0


@pytest.mark.parametrize("agrees", [False, True])
def test_a_damaged_journal_forges_no_record(start, agrees: bool):
    """A record that lies in `attempts/`, where agents write, is none; one that the ledger alone has needs a yes."""
    # An agent that hands something in ends by itself once nobody supervises; one that hangs does not.
    run = start(COUNTING if agrees else [*tries(*range(1, 5)), "hang"], overrides=OFTEN)
    run.wait_for_attempts(4)
    if not agrees:
        wait_until(lambda: len(run.received("agent-1", "reflect")) == 4, what="the launch that hangs")
    run.kill()
    (file,) = segments(run.layout.journal)
    lines = file.read_bytes().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if b'"Publish"' in line)
    attempt = max(run.attempts(), key=lambda one: one.number)
    file.write_bytes(flipped(file.read_bytes(), sum(map(len, lines[:last])) + 30))
    forged = run.layout.attempts / "000099.json"
    record = json.loads((run.layout.attempts / f"{attempt.number:06d}.json").read_text())
    done = resumed(run)
    assert done.returncode == 1
    assert f"only the ledger, where agents could write, has #{attempt.number}" in done.stderr
    if not agrees:
        assert run.left() != []
        done = coral_process("stop", "--run", str(run.layout.root))
        assert (done.returncode, run.left()) == (1, []), done.stderr
        assert "were ended; `coral resume" in done.stderr
    assert list(run.layout.journal.glob(f"{KEPT}*")) == []  # nothing was done
    if agrees:
        forged.write_text(json.dumps({**record, "number": 99, "score": 999.0, "order": attempt.order + 1}))
    done = resumed(run, *(["--yes"] if agrees else []))
    if not agrees:
        assert done.returncode == 1
        run.supervisor = None
        return
    assert done.returncode == 0, done.stderr
    assert "the journal ends before #99, of which there is a record; it is taken as it is" in done.stderr
    wait_until(lambda: not forged.exists(), what="the end of the forged record")
    run.wait_for_attempts(attempt.number + 2)
    stopped(run)
    assert_attempts_are_whole(run, run.fleet())
    assert not any(one.score == 999.0 for one in run.attempts())
    assert attempt in run.attempts()
