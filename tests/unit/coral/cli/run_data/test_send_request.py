"""The commands that ask for something: what they write down, for whom, and how they take the answer."""

import errno
import json
import os
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from real_runs import wait_until
from sample import make_run, requests_of
from strangers import closed

from attempts.files import write_json
from coral.cli.run_data import send_request
from coral.supervisor.lock import hold_lock
from workspace.layout import Layout

Run = Callable[..., tuple[int, str, str]]
DEADLINE = 120.0  # seconds: what takes longer has failed, on any machine


def test_the_operator_is_told_which_run_was_reached(
    layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = f"  run: {layout.root.parent.name}/{layout.root.name}\n"
    assert coral("tell", "try fewer restarts")[2] == reached
    assert coral("agent", "pause", "--all")[2] == reached
    assert coral("tell", "x", "--json")[2] == ""
    holds = "  a shorter interval holds at once, a longer one from the next on\n"
    assert coral("heartbeat", "set", "redirect", "--stagnant", "9")[2] == reached + holds
    monkeypatch.chdir(layout.clone("agent-1"))
    assert coral("heartbeat", "set", "redirect", "--stagnant", "3")[2] == ""


def test_tell_is_for_all_or_for_one(layout: Layout, coral: Run) -> None:
    code, out, _ = coral("tell", "try fewer restarts")
    assert (code, out) == (
        0,
        "requested; nobody supervises this run: it takes effect when the run is resumed\n"
        "  after `coral resume`, `coral attach --plain` shows what came of it\n",
    )
    coral("tell", "you", "--agent", "agent-2")
    assert requests_of(layout) == [
        {"type": "tell", "to": "*", "text": "try fewer restarts"},
        {"type": "tell", "to": "agent-2", "text": "you"},
    ]
    assert coral("tell", "x", "--agent", "agent-7")[2].endswith("its agents: agent-1, agent-2\n")
    assert coral("tell", "  ")[0] == 1


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("budget.hours=12", {"key": "hours", "limit": 12.0}),
        ("budget.per_agent.money=none", {"key": "per_agent.money", "limit": None}),
        ("budget.hours=task", {"key": "hours", "as_task": True}),
    ],
)
def test_the_operator_sets_a_budget(setting: str, asked: dict[str, object], layout: Layout, coral: Run) -> None:
    assert coral("set", setting)[0] == 0
    assert requests_of(layout) == [{"type": "set_budget", **asked}]


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("budget.hours", "it lacks a value"),
        ("grader.timeout=3", "cannot set grader.timeout"),
        ("budget.hours=soon", "cannot set budget.hours to 'soon': it is no number"),
        ("budget.hours=inf", "it is no number"),
    ],
)
def test_what_is_no_budget_is_not_set(setting: str, why: str, layout: Layout, coral: Run) -> None:
    code, _, errors = coral("set", setting)
    assert (code, requests_of(layout)) == (1, [])
    assert why in errors


def test_a_run_is_stopped_in_one_way(layout: Layout, coral: Run) -> None:
    assert "cannot stop both ways" in coral("stop", "--after-grades", "--keep-agents")[2]


def setting(owner: str, **heartbeat: object) -> dict[str, object]:
    return {"type": "set_heartbeat", "heartbeat": heartbeat, "owner": owner}


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("set redirect --stagnant 3", setting("*", name="redirect", stagnant=3)),
        ("set consolidate --every 7 --fleet", setting("fleet", name="consolidate", every=7)),
        (
            "set mine --minutes 2.5 --delivery inline --prompt hi --agent agent-1",
            setting("agent-1", name="mine", minutes=2.5, delivery="inline", prompt="hi"),
        ),
        ("set checkpoint --every 30m", setting("*", name="checkpoint", every="30m")),
        ("set checkpoint --every 0", setting("*", name="checkpoint", every=0)),
        ("set checkpoint --every 0m", setting("*", name="checkpoint", every="0m")),
        ("remove redirect", {"type": "remove_heartbeat", "name": "redirect", "owner": "*"}),
        ("reset", {"type": "reset_heartbeats", "owner": "*"}),
        ("--agent agent-2 reset", {"type": "reset_heartbeats", "owner": "agent-2"}),
    ],
)
def test_the_operator_changes_heartbeats(words: str, asked: dict[str, object], layout: Layout, coral: Run) -> None:
    assert coral("heartbeat", *words.split())[0] == 0
    assert requests_of(layout) == [asked]


def test_the_fleet_is_no_agent_and_the_option_for_it_is_named(layout: Layout, coral: Run) -> None:
    code, _, err = coral("heartbeat", "set", "consolidate", "--every", "7", "--agent", "fleet")
    assert (code, requests_of(layout)) == (1, [])
    assert err.splitlines()[1] == "  its agents: agent-1, agent-2; --fleet is the fleet as a whole"


def test_an_agent_changes_its_own_heartbeats(layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORAL_AGENT", "agent-1")
    monkeypatch.chdir(layout.clone("agent-1"))
    coral("heartbeat", "set", "redirect", "--stagnant", "3")
    coral("heartbeat", "set", "consolidate", "--every", "7")
    assert [request["owner"] for request in requests_of(layout, "agent-1")] == ["agent-1", "fleet"]
    refusal = coral("heartbeat", "reset", "--agent", "agent-2")[2]
    assert "cannot change the heartbeats of agent-2: you are agent-1" in refusal
    monkeypatch.chdir(layout.root)
    for words in (("tell", "x"), ("stop",), ("resume",), ("heartbeat", "reset")):
        code, _, err = coral(*words)
        assert (code, "is for the operator, and you are agent-1" in err) == (1, True)
    assert requests_of(layout) == []


def test_a_prompt_comes_from_a_file(layout: Layout, coral: Run, tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Look at {{ own.best }}.\n")
    coral("heartbeat", "set", "mine", "--every", "2", "--prompt", f"@{tmp_path / 'prompt.md'}")
    (asked,) = requests_of(layout)
    assert asked["heartbeat"] == {"name": "mine", "every": 2, "prompt": "Look at {{ own.best }}.\n"}
    assert "cannot read the prompt" in coral("heartbeat", "set", "mine", "--prompt", "@/nowhere")[2]
    assert "nothing to change was named" in coral("heartbeat", "set", "mine")[2]
    assert coral("heartbeat", "set", "reflect", "--prompt", "Look at {{ own.best }}}.")[2].startswith("  run: ")
    for prompt in ("", "  "):
        words = ("heartbeat", "set", "consolidate", "--every", "5", "--prompt", prompt)
        assert "cannot set consolidate: its prompt says nothing" in coral(*words)[2]
    assert len(requests_of(layout)) == 2


@pytest.mark.parametrize("prompt", ["{{ own.best", "{{ own.nope }}", "{% if own %}"])
def test_a_prompt_that_cannot_be_rendered_is_refused_unless_one_insists(
    layout: Layout, coral: Run, prompt: str
) -> None:
    words = ("heartbeat", "set", "mine", "--every", "2", "--prompt", prompt)
    code, _, err = coral(*words)
    assert (code, err.startswith("coral: cannot set mine: its prompt cannot be rendered: line 1")) == (1, True)
    assert requests_of(layout) == []
    assert coral(*words, "--raw")[0] == 0
    assert requests_of(layout)[0]["heartbeat"] == {"name": "mine", "every": 2, "prompt": prompt}


def test_an_unknown_option_is_reported_by_the_verb(coral: Run) -> None:
    assert coral("heartbeat", "set", "reflect", "--every", "3", "--plain")[2] == (
        "coral: cannot run coral heartbeat set: unrecognized arguments: --plain\n"
        "  `coral heartbeat set --help` explains it\n"
    )
    assert "cannot run coral heartbeat: unrecognized arguments: --wat" in coral("heartbeat", "--wat")[2]


@contextmanager
def supervised(layout: Layout, *later: Mapping[str, object], **first: object) -> Iterator[None]:
    """A supervisor that answers the next requests of the operator with these replies."""

    def work() -> None:
        requests = layout.requests_of("operator")
        for reply in (first, *later):
            path = wait_until(lambda: sorted(requests.glob("*.json")), DEADLINE, "a request")[0]
            write_json(layout.replies_to("operator") / path.name, reply, durable=False)
            path.unlink()

    answering = threading.Thread(target=work, daemon=True)
    answering.start()
    with hold_lock(layout.lock):
        yield
    answering.join(DEADLINE)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(send_request, "PATIENCE", DEADLINE)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("json_or_not", [(), ("--json",)])
def test_a_refusal_is_shown(layout: Layout, coral: Run, json_or_not: tuple[str, ...]) -> None:
    with supervised(layout, ok=False, message="cannot remove it: it is protected", hint="retime it"):
        said = coral("heartbeat", "remove", "reflect", *json_or_not)
    assert said == (1, "", "coral: cannot remove it: it is protected\n  retime it\n")


@pytest.mark.usefixtures("patient")
def test_of_several_refusals_each_is_shown_once(layout: Layout, coral: Run) -> None:
    def refused(message: str) -> dict[str, object]:
        return {"ok": False, "message": message, "hint": "see `coral status`"}

    with supervised(layout, refused("cannot pause agent-2: it has retired"), **refused("cannot pause agent-1: it is")):
        said = coral("agent", "pause", "--all")
    hint = "  see `coral status`\n"
    first, second = "coral: cannot pause agent-1: it is\n", "coral: cannot pause agent-2: it has retired\n"
    assert said == (1, "", first + hint + second + hint)
    with supervised(layout, refused("cannot: x"), **refused("cannot: x")):
        assert coral("agent", "pause", "--all")[2] == "coral: cannot: x\n" + hint


@pytest.mark.usefixtures("patient")
def test_an_acceptance_is_shown(layout: Layout, coral: Run) -> None:
    with supervised(layout, ok=True, message="redirect: every 3", hint=""):
        assert coral("heartbeat", "set", "redirect", "--stagnant", "3")[:2] == (0, "redirect: every 3\n")
    with supervised(layout, ok=True, message="queued", hint=""):
        code, out, _ = coral("tell", "be bold", "--json")
    (id,) = (path.stem for path in layout.replies_to("operator").glob("*.json") if "queued" in path.read_text())
    answered = {"run": layout.root.name, "request": id, "answered": True, "message": "queued", "hint": ""}
    assert (code, json.loads(out)) == (0, answered)


@pytest.mark.parametrize(
    "words", [("tell", "x"), ("heartbeat", "set", "reflect", "--every", "2"), ("heartbeat", "--json", "reset")]
)
def test_without_an_answer_the_request_stays(
    layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(send_request, "PATIENCE", 0.02)
    with hold_lock(layout.lock):
        code, out, _ = coral(*words, *(() if "--json" in words else ("--json",)))
    (asked,) = layout.requests_of("operator").glob("*.json")
    assert code == 0
    assert json.loads(out) == {
        "run": layout.root.name,
        "request": asked.stem,
        "answered": False,
        "message": "requested; there is no answer yet: it takes effect when the supervisor reads it",
        "hint": "`coral attach --plain` shows what came of it",
    }


def test_requests_to_a_run_without_a_supervisor_are_counted(
    layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "carried out" not in coral("status")[1]
    coral("tell", "x")
    assert "\n1 request of yours is carried out when it is resumed\n" in coral("status")[1]
    coral("tell", "y")
    assert "\n2 requests of yours are carried out when it is resumed\n" in coral("status")[1]
    with hold_lock(layout.lock):
        assert "carried out" not in coral("status")[1]
    monkeypatch.chdir(layout.clone("agent-1"))
    said = coral("heartbeat", "set", "redirect", "--stagnant", "3")
    assert said == (0, "requested; nobody supervises this run: it takes effect when the run is resumed\n", "")


def test_stop_waits_until_nobody_supervises(layout: Layout, coral: Run) -> None:
    assert coral("stop") == (0, f"{layout.root.name} is not running\n", "")
    with hold_lock(layout.lock):
        code, _, err = coral("stop", "--timeout", "0.02", "--reason", "enough")
        assert (code, "has not stopped within" in err) == (2, True)
        assert requests_of(layout) == [{"type": "stop", "reason": "enough"}]


def test_another_user_may_not_send_requests(layout: Layout, coral: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (("tell", "hello"), ("heartbeat", "set", "reflect", "--every", "2", "--fleet"))
    for words in (*asked, ("attach",)):
        coral(*words)  # what a command imports late, a stranger to this interpreter could not read either
    before = requests_of(layout)
    monkeypatch.setattr("os.access", lambda *_: False)
    with closed(layout.requests_of("operator")):
        answers = [coral(*words) for words in asked]
        attached = coral("attach")
    for code, _, err in answers:
        assert (code, "requests/operator: Permission denied\n  is it your run?" in err) == (1, True)
    assert (attached[0], f"{layout.private} cannot be read\n  is it your run?" in attached[2]) == (1, True)
    assert requests_of(layout) == before


@pytest.mark.usefixtures("layout")
def test_of_a_disk_that_cannot_be_written_the_folder_is_named(coral: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("os.fsync", refuse)
    for words in (("tell", "hello"), ("heartbeat", "set", "reflect", "--every", "2", "--fleet")):
        code, _, err = coral(*words)
        assert (code, "requests/operator: Read-only file system\n  free some space on its disk, or" in err) == (1, True)


def test_nobody_is_told_to_resume_a_run_whose_start_was_cut_off(layout: Layout, coral: Run) -> None:
    layout.status.unlink()
    (layout.attempts / "000000.json").unlink()
    for words, code in (("status", 0), ("attach", 1), ("tell hello", 0), ("resume", 1)):
        found, out, err = coral(*words.split())
        said = " ".join((out + err).split())
        assert (found, "it was never made to its end" in said, f"remove {layout.root}" in said) == (code, True, True)
        assert "coral resume" not in said
    code, out, _ = coral("health")
    assert (code, "never made to its end" in out, "remove its folder" in out, "resume" in out) == (6, True, True, False)
    as_json = json.loads(coral("status", "--json")[1])
    assert [reason["kind"] for reason in as_json["health"]["reasons"]] == ["not_made"]


def test_resume_and_attach_know_who_supervises(layout: Layout, coral: Run, tmp_path: Path) -> None:
    assert "nobody supervises it" in coral("attach")[2]
    with hold_lock(layout.lock):
        code, _, err = coral("resume", "-i", "go on")
    assert (code, "supervises it already\n  `coral attach` watches it" in err) == (1, True)
    assert requests_of(layout) == []
    make_run(tmp_path / "runs", task="newer")
    assert f"`coral status --run {layout.root.name}` shows" in coral("attach", "--task", "toy")[2]


def test_pauses_grow_with_the_time_that_has_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, pauses = [0.0], list[float]()

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr(send_request, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    assert list(send_request.pauses(0.0)) == [0.0]
    looks = list(send_request.pauses(12.5))
    assert looks[-1] == pytest.approx(12.5)
    for seconds, pause in ((0.0, 0.002), (0.4, 0.02), (5.0, 0.05), (10.0, 1.0)):
        assert pauses[bisect_left(looks, seconds)] == pytest.approx(pause, rel=0.06)
    assert pauses[-1] == pytest.approx(0.5, abs=0.06)  # not later than was allowed
