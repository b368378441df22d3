"""What an agent that nothing holds back removes or alters of the supervisor's own files takes nothing with it."""

import os
import shutil

import pytest
from real_runs import TRY, wait_until
from survival import assert_attempts_are_whole

from coral.errors import CoralError
from coral.journal import published, segments
from coral.records.ledger import Ledger
from coral.supervisor.lock import hold_lock, holder
from coral.supervisor.loop import Supervisor, supervise

COUNTING = [{"repeat": {"steps": TRY}}]
OFTEN = ("run.poll_seconds=0.2",)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def remove_all(path):
    for file in path.parent.iterdir():
        file.unlink()


def said(run):
    return {event["text"].partition(", though")[0] for event in run.events("alert")}


def go_on(run, attempts=2):
    run.wait_for_attempts(len(run.attempts()) + attempts)


@pytest.mark.parametrize("spoil", [remove_all, cut, lambda path: shutil.rmtree(path.parent)])
def test_a_journal_that_is_spoiled_while_it_is_written_takes_nothing_with_it(start, spoil):
    run = start(COUNTING, overrides=OFTEN)
    go_on(run)
    spoil(segments(run.layout.journal)[-1])
    wait_until(lambda: said(run), what="an alert")
    run.kill()
    assert_attempts_are_whole(run, run.fleet())
    run.supervise()
    go_on(run)
    run.stop()
    assert_attempts_are_whole(run, run.fleet())
    found = "the journal was cut" if spoil is cut else "the journal was deleted"
    assert found in said(run) <= {found, "000001.jsonl of the journal was deleted"}


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
