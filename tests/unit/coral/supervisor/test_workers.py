"""Actions that worker threads perform: each comes to its events, wakes the loop, and can be cancelled by its name."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from real_runs import wait_until
from shortages import no_more_threads

from attempts.record import Kind
from coral.fleet import actions as do, events as on
from coral.supervisor.event_queue import EventQueue
from coral.supervisor.workers import BackgroundActions, WorkerPool
from workspace.cancellation import current_token

SCAN = do.ScanEdits(agent="ann", launch=3)
GRADE = do.CheckOut(number=3, launch=2, commit="c", kind=Kind.REAL)


@pytest.fixture
def pool() -> Iterator[WorkerPool]:
    pool = WorkerPool()
    yield pool
    pool.finish(60)


def test_what_an_action_comes_to_is_gathered_once(pool: WorkerPool) -> None:
    woken = threading.Semaphore(0)
    queue = EventQueue(woken.release)
    background = BackgroundActions(pool, queue)
    background.run_later(SCAN, lambda: [on.EditsScanned(agent="ann", launch=3, edited=9.0)])
    assert woken.acquire(timeout=60)
    assert queue.take() == [on.EditsScanned(agent="ann", launch=3, edited=9.0)]
    assert queue.take() == []


def test_work_that_breaks_is_the_failure_of_its_action_and_what_it_put_right_is_told(pool: WorkerPool) -> None:
    restored = on.Restored(item="the hub's config", found="was changed", source="the run's start")

    def breaks() -> Iterator[on.Event]:
        yield restored
        yield on.EditsScanned(agent="ann", launch=3, edited=9.0)
        raise RuntimeError("in the middle")

    woken = threading.Semaphore(0)
    queue = EventQueue(woken.release)
    BackgroundActions(pool, queue).run_later(SCAN, breaks)
    assert woken.acquire(timeout=60)
    assert woken.acquire(timeout=60)
    assert queue.take() == [
        restored,
        on.EditsScanned(agent="ann", launch=3),
        on.Broken(item="the scan of the files of ann", reason="RuntimeError: in the middle"),
    ]


def test_an_action_is_cancelled_by_its_name_and_no_other(pool: WorkerPool) -> None:
    began, go = threading.Semaphore(0), threading.Event()
    cancelled: dict[str, bool] = {}

    def work(who: str) -> Iterator[on.Event]:
        began.release()
        go.wait(60)
        cancelled[who] = current_token().is_cancelled
        yield on.CheckedOut(number=3, launch=2)

    background = BackgroundActions(pool, EventQueue(lambda: None))
    for who in ("#3", "#4"):
        background.run_later(GRADE, lambda who=who: work(who), who)
        assert began.acquire(timeout=60)
    background.cancel("#3")
    background.cancel("#5")
    go.set()
    background.close(60)
    assert cancelled["#3"]


def test_the_later_of_two_actions_with_one_name_can_be_cancelled_once_the_earlier_is_over(pool: WorkerPool) -> None:
    began, woken, go = threading.Event(), threading.Event(), threading.Event()
    earlier_may_end = threading.Event()
    cancelled: list[bool] = []

    def earlier() -> Iterator[on.Event]:
        earlier_may_end.wait(60)
        yield on.CheckedOut(number=3, launch=1)

    def later() -> Iterator[on.Event]:
        began.set()
        go.wait(60)
        cancelled.append(current_token().is_cancelled)
        yield on.CheckedOut(number=3, launch=2)

    background = BackgroundActions(pool, EventQueue(woken.set))
    background.run_later(GRADE, earlier, "#3")
    background.run_later(GRADE, later, "#3")
    assert began.wait(60)
    earlier_may_end.set()
    assert woken.wait(60)
    background.cancel("#3")
    go.set()
    background.close(60)
    assert cancelled == [True]


def test_a_stuck_worker_is_replaced_and_a_working_one_is_not() -> None:
    may_end = threading.Event()
    begun: list[int] = []

    def block(number: int) -> int:
        begun.append(number)
        may_end.wait(60)
        return number

    for patience, most, expected in ((1e9, 9, 2), (0.0, 9, 6), (0.0, 4, 4)):
        begun.clear()
        may_end.clear()
        workers = WorkerPool(width=2, most=most, patience=patience)
        futures: list[Future[int]] = [workers.submit(block, number) for number in range(6)]
        for _ in range(9):
            workers.advance()
        wait_until(lambda: len(begun) == expected)  # noqa: B023 - called at once
        assert sum(future.running() for future in futures) == expected
        may_end.set()
        assert [future.result(60) for future in futures] == list(range(6))
        workers.finish(60)


def test_an_error_is_raised_for_whoever_asks_for_the_result() -> None:
    workers = WorkerPool()
    failed = workers.submit(int, "x")
    with pytest.raises(ValueError, match="invalid literal"):
        failed.result(60)
    workers.finish(60)


def test_work_is_done_by_the_threads_that_there_are_where_no_other_can_be_started(pool: WorkerPool) -> None:
    held = threading.Event()
    with no_more_threads():
        stuck = pool.submit(held.wait, 120)
        waiting = [pool.submit(int, number) for number in range(30)]
        pool.advance()
        held.set()
        assert [work.result(120) for work in waiting] == list(range(30))
    assert stuck.result(120)
    gate = threading.Barrier(2)
    both = [pool.submit(gate.wait, 120) for _ in range(2)]  # at once, by another thread than before
    assert sorted(work.result(120) for work in both) == [0, 1]
