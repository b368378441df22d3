"""`coral start --ui`: the dashboard beside a real run, gone with it; and that run's page at an earlier moment."""

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

import httpx2 as httpx
import pytest
from dashboard import change_headers, visitor
from real_runs import coral_process, tries, wait_until, write_task
from starlette.testclient import TestClient

from coral.cli.commands import ui
from workspace.layout import Layout, runs_under

ADDRESS = re.compile(r"^dashboard: (http://127\.0\.0\.1:\d+/\?token=\S{40})", re.MULTILINE)


def test_the_dashboard_is_served_while_the_run_is_watched_and_shows_it_as_it_was(tmp_path) -> None:
    task = write_task(tmp_path / "task", tries(1, 2, 3, 4))
    settings = ("agents.count=1", "budget.attempts=3", "task.name=two_words")  # whose folder is called two-words
    done = coral_process("start", str(task), "--ui", "--plain", *settings, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = ADDRESS.search(done.stdout)
    assert found is not None, done.stdout
    with contextlib.suppress(httpx.TransportError):  # else another dashboard has the port by now
        assert httpx.get(found[1]).status_code == 401
    (layout,) = runs_under(tmp_path / "runs")
    client, base = visitor(layout), f"/api/runs/{layout.root.name}"
    now = client.get(f"{base}/fleet").json()
    assert (now["state"], now["attempts"], now["score"]["best"]) == ("stopped", 3, "3")
    end = int(now["clock"]) + 1
    then = client.get(f"{base}/past", params={"at": end}).json()
    assert (then["attempts"], then["score"]["best"], then["task"]) == (3, "3", now["task"])
    first = client.get(f"{base}/curve").json()["points"][0]
    then = client.get(f"{base}/past", params={"at": first["at"] + 0.001}).json()
    assert (then["attempts"], then["score"]["best"], then["state"]) == (1, "1", "running")
    for wrong in ("", "0", "nan", "1e9", "-1"):
        assert client.get(f"{base}/past", params={"at": wrong}).status_code == 404, wrong
    check_preview(client, f"{base}/preview")
    one = client.get(f"{base}/attempts/3").json()
    against_parent = client.get(f"{base}/attempts/3/diff").json()
    against_seed = client.get(f"{base}/attempts/3/diff", params={"against": "seed"}).json()
    changed = lambda found: {(line[0], line[3][0][1]) for file in found["files"] for line in file["lines"]}  # noqa: E731
    assert {("removed", "2"), ("added", "3")} <= changed(against_parent)
    assert ("removed", "0") in changed(against_seed)
    assert against_seed["against"] == "#0"
    assert [held["number"] for held in one["ancestors"]] == [0, 1, 2]
    for wrong in ("x", "..", "99"):
        assert client.get(f"{base}/attempts/3/diff", params={"against": wrong}).status_code == 404
    check_resume(client, base)


def check_preview(client: TestClient, address: str) -> None:
    """A prompt is rendered with the agent's own figures; what is wrong with one is said; nothing is set."""

    def previewed(headers: Mapping[str, str] = change_headers(), **given: str) -> tuple[int, dict[str, str]]:
        answer = client.post(address, json={"agent": "agent-1", **given}, headers=headers)
        return answer.status_code, answer.json()

    mine = "{{ agent.name }}: {{ own.attempts }} attempts, the last #{{ attempt.number }} scored {{ attempt.score }}"
    assert previewed(name="mine", prompt=mine) == (
        200,
        {"agent": "agent-1", "text": "agent-1: 3 attempts, the last #3 scored 3", "problem": ""},
    )
    status, built_in = previewed(name="reflect", prompt=" ")
    assert (status, "Learn from #3" in built_in["text"], built_in["problem"]) == (200, True, "")
    wrong = previewed(name="mine", prompt="{{ attempt.wrong }}{{ nothing }}")[1]
    assert wrong["problem"].startswith("line 1: there is no name nothing")
    assert "could not be rendered" in wrong["text"]
    assert "longer than" in previewed(name="mine", prompt="x" * 30_000)[1]["problem"]
    assert previewed(name="mine", prompt="")[0] == 404
    assert previewed(name="mine", prompt="x", agent="nobody")[0] == 404
    assert previewed(name="mine", prompt="x", headers={})[0] == 403


def check_resume(client: TestClient, base: str) -> None:
    """A run goes on as by `coral resume`, with larger budgets and no other key; a refusal is that of the command."""

    def resumed(**given: object) -> tuple[int, dict[str, str]]:
        answer = client.post(f"{base}/resume", json=given, headers=change_headers())
        return answer.status_code, answer.json()

    assert client.post(f"{base}/resume", json={}).status_code == 403
    status, used_up = resumed(text="-x")
    assert (status, "the budget of 3 attempts is used up" in used_up["error"]) == (404, True), used_up
    assert "budget.attempts=" in used_up["hint"]
    for other in ("grader.setup=[x]", "--yes", "budget.hours=1;x"):
        status, refused = resumed(budgets=other)
        assert (status, "budgets alone" in refused["hint"]) == (404, True), refused
    status, goes_on = resumed(budgets="budget.attempts=4", agreed=True)
    assert (status, "resumed: process" in goes_on.get("message", "")) == (200, True), goes_on

    def is_over() -> bool:
        fleet = client.get(f"{base}/fleet").json()
        return (fleet["state"], fleet["attempts"]) == ("stopped", 4)

    wait_until(is_over)


def test_it_is_not_served_where_the_command_returns_at_once(tmp_path) -> None:
    task = write_task(tmp_path / "task", tries(1))
    done = coral_process("start", str(task), "--ui", "--detach", cwd=tmp_path)
    assert (done.returncode, "cannot serve the dashboard" in done.stderr) == (1, True)
    assert runs_under(tmp_path / "runs") == []


def test_a_dashboard_that_complains_much_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, program = tmp_path / "done", tmp_path / "program"
    complains = f"head -c 1000000 /dev/zero >&2\n: > {done}\ncat > /dev/null\n"
    program.write_text(f'#!/bin/sh\necho \'{{"address": "here"}}\'\n{complains}')
    program.chmod(0o755)
    monkeypatch.setattr(ui.sys, "executable", str(program))
    with ui.beside(Layout(tmp_path)) as address:
        assert address == "here"
        wait_until(done.exists, what="the end of its complaints")
