"""Clocks that jump and supervisors that sleep: nobody is charged for it, and no request is lost or overtaken."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
from real_runs import wait_until
from sample import make_run

from attempts.files import write_json
from coral.cli.run_data import send_request
from coral.supervisor import clock
from coral.supervisor.clock import LONGEST, Clock
from workspace.layout import OPERATOR, Layout


@pytest.fixture
def machine(monkeypatch) -> Iterator[list[float]]:
    """The machine's own clock, in one place of a list."""
    shown = [1000.0]
    with monkeypatch.context() as patch:
        patch.setattr(clock.time, "monotonic", lambda: shown[0])
        yield shown


def test_what_is_slept_rightly_counts_and_what_is_overslept_does_not(machine: list[float]) -> None:
    mine = Clock(50.0)
    assert mine.now().run_time == 50
    machine[0] += 1
    assert mine.now().run_time == 51
    mine.sleep(60)
    machine[0] += 60
    assert mine.now().run_time == 111
    mine.sleep(5)
    machine[0] += 3600  # stopped by a signal, or the machine was
    assert mine.now().run_time == 116 + LONGEST
    machine[0] += 3600  # at work
    assert mine.now().run_time == 116 + 2 * LONGEST
    mine.sleep(-1)  # a deadline that has passed
    machine[0] += 1
    assert mine.now().run_time == 117 + 2 * LONGEST


STALL, ASLEEP = 20.0, 21.0  # of the pause, the run's clock counts 2.5 s


def test_a_supervisor_that_was_stopped_with_its_agents_charges_nobody_for_it(start) -> None:
    run = start("echo here; exec sleep 300", overrides=(f"agents.stall={STALL:g}", "run.poll_seconds=0.5"))
    wait_until(lambda: any(agent.has_output for agent in run.fleet().agents.values()), what="its first word")
    everybody = [run.supervisor.pid, *run.left()]
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    before, since = run.status()["clock"], time.monotonic()
    wait_until(lambda: time.monotonic() - since > ASLEEP, what="more time than anybody may be silent")
    os.kill(run.supervisor.pid, signal.SIGCONT)
    # It has looked around, and the agent could not say another word yet.
    wait_until(lambda: run.status()["clock"] > before + 0.6, what="a look around")
    assert run.events("stalled") == []
    for pid in everybody[1:]:
        os.kill(pid, signal.SIGCONT)
    assert run.ask({"type": "tell", "to": "agent-1", "text": "are you there"})["ok"] is True


@pytest.fixture
def layout(tmp_path) -> Layout:
    made = make_run(tmp_path / "runs")
    made.requests_of(OPERATOR).mkdir(parents=True, exist_ok=True)
    made.replies_to(OPERATOR).mkdir(parents=True, exist_ok=True)
    return made


def asked(layout: Layout) -> list[object]:
    """The texts of the requests that lie there, in the order in which the supervisor takes them up."""
    return [json.loads(path.read_bytes())["text"] for path in sorted(layout.requests_of(OPERATOR).glob("*.json"))]


def test_requests_of_one_instant_and_after_a_clock_set_back_stay_in_order(layout: Layout, monkeypatch) -> None:
    times = iter([5_000, 5_000, 4_000, 6_000, 1, 6_000])
    monkeypatch.setattr(time, "time_ns", lambda: next(times, 6_000))
    for number in range(3):
        send_request.send(layout, OPERATOR, {"type": "tell", "text": number})
    assert asked(layout) == [0, 1, 2]
    # What was answered is gone from there, and its id is not given again.
    for path in sorted(layout.requests_of(OPERATOR).glob("*.json")):
        write_json(layout.replies_to(OPERATOR) / path.name, {"ok": True}, durable=False)
        path.unlink()
    answered = {path.stem for path in layout.replies_to(OPERATOR).glob("*.json")}
    later = [send_request.send(layout, OPERATOR, {"type": "tell", "text": number}) for number in range(3, 6)]
    assert asked(layout) == [3, 4, 5]
    assert later == sorted(later)
    assert min(later) > max(answered)


def test_requests_of_many_at_once_are_all_there(layout: Layout, monkeypatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 7)
    ready = threading.Barrier(8)

    def send(number: int) -> None:
        ready.wait(60)
        send_request.send(layout, OPERATOR, {"type": "tell", "text": number})

    everybody = [threading.Thread(target=send, args=(number,)) for number in range(8)]
    for thread in everybody:
        thread.start()
    for thread in everybody:
        thread.join(60)
    assert sorted(asked(layout)) == list(range(8))  # type: ignore[type-var]
    assert not list(layout.requests_of(OPERATOR).glob(".*"))


def test_without_links_a_request_replaces_no_other_either(layout: Layout, monkeypatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    first = send_request.send(layout, OPERATOR, {"type": "tell", "text": "one"})
    with pytest.raises(FileExistsError):
        write_json(layout.requests_of(OPERATOR) / f"{first}.json", {"text": "two"}, durable=True, new=True)
    assert asked(layout) == ["one"]
    assert not list(layout.requests_of(OPERATOR).glob(".*"))


def test_a_name_that_somebody_planted_at_the_end_of_time_stops_no_request(layout: Layout) -> None:
    (layout.requests_of(OPERATOR) / f"{'9' * 20}.json").write_text('{"type": "tell", "text": "planted"}')
    send_request.send(layout, OPERATOR, {"type": "tell", "text": "mine"})
    assert sorted(asked(layout)) == ["mine", "planted"]  # type: ignore[type-var]
