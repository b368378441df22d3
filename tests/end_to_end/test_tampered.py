"""What an agent that nothing holds back removes or alters of the supervisor's own files takes nothing with it."""

import json
import os
import re
import shutil

import pytest
from files import write_files
from real_runs import TRY, coral_process, wait_until
from survival import assert_attempts_are_whole

from coral.errors import CoralError
from coral.journal import published, segments
from coral.journal.lines import seal
from coral.preflight.resume_check import changes_since_supervised
from coral.records.ledger import Ledger
from coral.supervisor.lock import hold_lock, holder
from coral.supervisor.loop import Supervisor, supervise
from workspace.git import Git

COUNTING = [{"repeat": {"steps": TRY}}]
OFTEN = ("run.poll_seconds=0.2",)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def remove_all(path):
    for file in path.parent.iterdir():
        file.unlink(missing_ok=True)  # the supervisor may have removed it


def remove_folder(path):
    # A folder is not removed while the supervisor makes files in it.
    shutil.rmtree(path.parent.rename(path.parent.with_name("aside")))


def said(run):
    return {event["text"].partition(", though")[0] for event in run.events("alert")}


def go_on(run, attempts=2):
    run.wait_for_attempts(len(run.attempts()) + attempts)


@pytest.mark.parametrize("spoil", [remove_all, cut, remove_folder])
def test_a_journal_that_is_spoiled_while_it_is_written_takes_nothing_with_it(start, spoil):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    spoil(segments(run.layout.journal)[-1])
    wait_until(lambda: said(run), what="an alert")
    run.kill()  # whatever is decided by then is published by the next supervisor
    run.supervise()
    go_on(run)
    run.stop()
    assert_attempts_are_whole(run, run.fleet())
    found = "the journal was cut" if spoil is cut else "the journal was deleted"
    assert found in said(run) <= {found, "000001.jsonl of the journal was deleted"}


def test_what_somebody_takes_out_of_the_hub_is_put_back(start):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run, 4)
    hub = run.layout.hub
    first, second, third = [attempt for attempt in run.attempts() if attempt.number][:3]
    pack = next((hub / "objects" / "pack").glob("*.pack"))
    (hub / "refs" / "attempts" / "1").unlink()
    (hub / "altered").write_text(f"{first.commit}\n")
    (hub / "altered").replace(hub / "refs" / "attempts" / "2")  # at no moment is it empty, which would be deleted
    (hub / "objects" / third.commit[:2] / third.commit[2:]).unlink()
    (hub / "objects" / second.tree[:2] / second.tree[2:]).unlink()
    (hub / "refs" / "heads" / "main").unlink()
    pack.unlink()
    go_on(run)
    spoiled = ((1, "deleted"), (2, "altered"), (3, "deleted"))
    expected = {f"the commit of #{number} in the hub was {what}" for number, what in spoiled}
    expected |= {"a file of #2 in the hub was deleted"}
    expected |= {"the hub's reference of the seed was changed", f"the hub's objects/pack/{pack.name} was deleted"}
    wait_until(lambda: expected <= said(run), what=f"{expected} in {said(run)}")
    run.stop()
    pinned = {path.name: path.read_text().strip() for path in (hub / "refs" / "attempts").iterdir()}
    attempts = [attempt for attempt in run.attempts() if attempt.number]
    assert pinned.items() >= {(str(attempt.number), attempt.commit) for attempt in attempts}
    assert Git(hub).text("fsck", "--strict", "--no-dangling") == ""


def test_settings_that_somebody_gave_the_hub_start_no_program(start, tmp_path):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    run.kill()
    hub, canary = run.layout.hub, tmp_path / "canary"
    with (hub / "config").open("a") as file:
        file.write(f'[filter "x"]\n\tsmudge = touch {canary}; cat\n\tclean = cat\n')
    (hub / "info").mkdir(exist_ok=True)
    (hub / "info" / "attributes").write_text("* filter=x\n")
    (hub / "shallow").mkdir()
    run.supervise()
    go_on(run)
    run.stop()
    assert not canary.exists()
    assert {f"the hub's {name} was changed" for name in ("config", "info/attributes", "shallow")} <= said(run)
    assert_attempts_are_whole(run, run.fleet())


def test_a_ledger_that_is_removed_while_it_is_written_is_there_again(start):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    for path in run.layout.private.glob("ledger.sqlite*"):
        path.unlink()
    go_on(run)
    # One after the other they are gone: what is made anew in between has lost a part of its own.
    wait_until(lambda: said(run), what="an alert")
    assert all(text.startswith("the private ledger of records was ") for text in said(run))
    run.stop()
    ledger = Ledger(run.layout.ledger, lambda: ())
    assert [row.attempt for row in ledger.page(-1, 1000)] == list(published(run.layout.journal))
    ledger.close()
    assert_attempts_are_whole(run, run.fleet())


def test_a_journal_that_forgot_the_records_makes_no_forgeries_of_them(start):
    """Made again from memory, the journal knows nothing of the first ones; nor does a ledger that is made from it."""
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    remove_all(segments(run.layout.journal)[-1])
    wait_until(lambda: said(run), what="an alert")
    go_on(run)
    os.link(run.layout.ledger, run.layout.private / "link")
    go_on(run)
    run.stop()
    assert not any("records" in text for text in said(run))
    run.layout.ledger.unlink()
    (run.layout.private / "link").unlink()
    before = run.attempts()
    layout = run.layout
    with hold_lock(layout.lock):
        manager = Supervisor(layout, (layout.private / "seed").read_text().strip())
        assert [row.attempt for row in manager._ledger.page(0, 1000)] == before
        (loss,) = manager._ledger.losses()
        manager.close()
    assert loss.found == "were gone from journal and ledger"
    assert list(layout.attempts.glob(".*.foreign-*")) == []
    assert run.attempts() == before


def test_a_run_that_lost_its_journal_is_not_begun_again(start):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    run.stop()
    kept = {path: path.read_bytes() for path in run.layout.attempts.glob("0*.json")}
    aside = run.layout.journal.rename(run.layout.private / "aside")
    with pytest.raises(CoralError, match="its journal is gone"):
        supervise(run.layout)
    assert {path: path.read_bytes() for path in run.layout.attempts.glob("0*.json")} == kept
    shutil.rmtree(run.layout.journal)
    aside.rename(run.layout.journal)
    run.supervise()
    go_on(run)
    run.stop()
    assert_attempts_are_whole(run, run.fleet())


def test_who_removes_the_lock_lets_no_second_supervisor_in(start):
    run = start(["hang"])
    wait_until(lambda: run.layout.output("agent-1", 1).exists())
    run.layout.lock.unlink()
    wait_until(lambda: holder(run.layout.lock) == run.supervisor.pid, what="the lock")
    wait_until(lambda: run.events("alert"), what="an alert")
    assert "the lock that keeps a second supervisor out was removed" in run.events("alert")[0]["text"]


# What changes the meaning of scores, and who believes a journal.

HONEST = "def grade(workspace):\n    return float((workspace / 'x.txt').read_text())\n"


def resumed(run, *words):
    """What a resume comes to. One that goes on has nothing to do, since its budget is used up."""
    return coral_process("resume", "--run", str(run.layout.root), "budget.attempts=1", *words, "--detach")


def test_a_grader_that_is_replaced_grades_nothing(start):
    run = start(COUNTING, grade=HONEST, overrides=OFTEN)
    go_on(run)
    (run.layout.grader / "grade.py").write_text("def grade(workspace):\n    return 999.0\n")
    (run.layout.grader / "json.py").write_text("raise SystemExit('not ours')\n")
    go_on(run, 4)
    run.stop()
    assert {attempt.verdict for attempt in run.attempts()} <= {"new best", "own best", "worse", "tied"}
    assert not any(attempt.score == 999.0 for attempt in run.attempts())
    assert said(run) == {"private/grader/grade.py was changed", "private/grader/json.py was put there"}


@pytest.mark.parametrize("is_pipe", [False, True])
def test_an_environment_that_somebody_names_starts_no_grader(start, tmp_path, is_pipe):
    run = start(COUNTING, grade=HONEST, overrides=OFTEN)
    go_on(run)
    python = write_files(tmp_path / "mine", {"bin/python": f"#!/bin/sh\ntouch {tmp_path}/canary; exit 1\n"})
    (python / "bin" / "python").chmod(0o755)
    if is_pipe:
        os.mkfifo(run.layout.private / "grader.venv")
    else:
        write_files(run.layout.private, {"grader.venv": f"{python}\n"})
    go_on(run, 4)
    run.stop()
    assert not (tmp_path / "canary").exists()
    assert said(run) == {"private/grader.venv was put there"}
    write_files(run.layout.private, {"grader.venv": f"{python}\n"})
    assert changes_since_supervised(run.layout) == ["private/grader.venv changed"]


def test_a_resume_stops_where_the_task_was_changed_until_somebody_says_yes(start):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    run.stop()
    assert resumed(run).returncode == 1
    task = run.layout.task_file
    task.write_text(task.read_text().replace('"maximize"', '"minimize"'))
    before = len(run.events())
    done = resumed(run)
    assert (done.returncode, done.stdout) == (1, "")
    assert "since its last supervisor: private/task.yaml changed" in done.stderr
    assert "--yes resumes with it as it is" in done.stderr
    assert len(run.events()) == before
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0  # whatever it does, it hides nothing
    assert "since its last supervisor: private/task.yaml changed" in resumed(run).stderr
    done = resumed(run, "budget.attempts=1000", "--yes")
    assert "private/task.yaml changed; it is taken as it is" in done.stderr
    assert "its own copy" not in done.stderr  # nobody has changed the task itself
    assert done.returncode == 0
    run.stop()
    assert "since its last" not in resumed(run).stderr


def test_an_override_that_was_killed_is_no_tampering_and_a_task_that_somebody_staged_is(start, monkeypatch):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    run.stop()
    monkeypatch.setattr("coral.supervisor.loop.Supervisor", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        supervise(run.layout, ("budget.attempts=1000",))
    assert "attempts: 1000" in run.layout.task_file.read_text()
    assert changes_since_supervised(run.layout) == []
    staged = run.layout.staged_task / "0001"
    staged.mkdir(parents=True)
    (staged / "task.yaml").write_text(run.layout.task_file.read_text().replace('"maximize"', '"minimize"'))
    (staged / "done.json").write_text('{"baseline": null, "heartbeats": false, "holdout": false}')
    assert changes_since_supervised(run.layout) == ["private/reload/task.yaml changed"]


def test_a_resume_stops_where_the_journal_was_rewritten(start):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    run.stop()
    newest, sum = segments(run.layout.journal)[-1], 0
    lines, forged = newest.read_bytes().splitlines(keepends=True), b""
    for line in lines:
        data, sum = seal({name: value for name, value in json.loads(line).items() if name != "sum"}, sum)
        forged += data
    assert forged == newest.read_bytes()
    sum, forged = 0, b""
    for line in lines:
        plain = {name: value for name, value in json.loads(line).items() if name != "sum"}
        for action in plain.get("actions", ()):
            if action["is"] == "Publish":
                action["attempt"]["score"] = 777.7
        data, sum = seal(plain, sum)
        forged += data
    newest.write_bytes(forged)
    run.layout.ledger.unlink()
    done = resumed(run)
    assert done.returncode == 1
    assert "since its last supervisor: the journal does not follow from its own events at 000001.jsonl" in done.stderr
    assert resumed(run, "budget.attempts=1000", "--yes").returncode == 0
    run.stop()
    assert "since its last" not in resumed(run).stderr


def test_a_resume_asks_where_the_journal_ends_before_the_records_that_agents_could_write(start):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run, 4)
    run.stop()
    newest, last = segments(run.layout.journal)[-1], run.attempts()[-1].number
    lines = newest.read_bytes().splitlines(keepends=True)
    newest.write_bytes(b"".join(lines[: len(lines) // 3]))
    done = resumed(run, "budget.attempts=1000")
    assert done.returncode == 1
    assert re.search(rf"only the ledger, where agents could write, has #[2-9#, ]*{last}\n", done.stderr)
    assert "--yes resumes with them" in done.stderr
