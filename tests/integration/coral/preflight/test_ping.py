"""`coral doctor --ping`: a program is started as in a run, asked for one word, and what came back is said."""

import json
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from files import write_files
from real_runs import is_alive

from coral.cli import main
from coral.preflight import ping
from coral.runtimes import registry

AGENT = Path(__file__).parents[3] / "support" / "acp_agent.py"
GREETING = 'echo \'{"type":"system","subtype":"init","session_id":"s"}\'; '
PONG = '{"type":"assistant","session_id":"s","message":{"content":[{"type":"text","text":"pong"}]}}'
USED = '"total_cost_usd":0.03,"modelUsage":{"m":{"inputTokens":12}}'
DONE = f'{{"type":"result","subtype":"success","session_id":"s",{USED}}}'
LIMIT = '{"type":"result","subtype":"success","is_error":true,"result":"You have hit your limit: try again in 2 hours"}'


def install(here: Path, name: str, text: str) -> None:
    write_files(here / "bin", {name: f'#!/bin/sh\n[ "$1" = --version ] && exec echo 1.0\n{text}\n'})


def write_task(here: Path, agents: Mapping[str, object]) -> None:
    task = f"task: {{name: t, description: d}}\ngrader: {{command: 'true'}}\nagents: {json.dumps(agents)}\n"
    (here / "task" / "task.yaml").write_text(task)


def asked(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> dict[str, dict[str, str]]:
    assert main(("doctor", "--json", "--ping", *words)) == code
    checks = json.loads(capsys.readouterr().out)["checks"]
    return {check["name"]: check for check in checks if check["name"].endswith(" ping")}


def test_a_program_answers_in_a_temporary_folder(here: Path, capsys) -> None:
    hears = f"cat > {here}/heard; pwd > {here}/where; echo $CLAUDE_CONFIG_DIR >> {here}/where; "
    install(here, "claude", f"{hears}{GREETING}echo '{PONG}'; echo '{DONE}'; sleep 600 & echo $! > {here}/pid")
    found = asked(capsys, "claude")["claude ping"]
    assert found["state"] == "well"
    assert found["text"].startswith("answered 'pong' after ")
    assert found["text"].endswith(" s, 12 tokens, $0.03")
    assert (here / "heard").read_text() == ping.PROMPT
    assert [Path(line).exists() for line in (here / "where").read_text().splitlines()] == [False, False]
    assert not is_alive(int((here / "pid").read_text()))


@pytest.mark.parametrize(
    ("script", "state", "text", "advice"),
    [
        (
            "echo 'Error: Invalid API key' >&2; exit 1",
            "wrong",
            "Error: Invalid API key",
            "log in once with `claude`, or set ANTHROPIC_API_KEY; then ask again",
        ),
        ("echo 'no room' >&2; exit 1", "wrong", "it crashed: no room", "start it by hand, as you would without Coral"),
        (f"echo '{DONE}'", "note", "ended its turn without a word after ", ""),
        (f"echo '{LIMIT}'; exit 1", "note", "its account is at a limit until ", "a run would wait for it"),
    ],
)
def test_a_failure_is_reported_with_advice(script: str, state: str, text: str, advice: str, here: Path, capsys) -> None:
    install(here, "claude", script)
    found = asked(capsys, "claude", code=int(state == "wrong"))["claude ping"]
    assert (found["state"], found["advice"]) == (state, advice)
    assert found["text"].startswith(text)


def test_a_program_that_does_not_answer_is_ended(here: Path, monkeypatch) -> None:
    install(here, "claude", f"trap '' INT TERM; {GREETING}while :; do sleep 600; done")
    monkeypatch.setattr(ping, "GRACE", 0.2)
    (found,) = ping.ping_all(None, ["claude"], print, 0.5)
    assert (found.state, found.text) == ("wrong", "no answer within 0.5 s")
    assert "provider" in found.advice


def again(error: str) -> str:
    return f'{{"type":"system","subtype":"api_retry","attempt":1,"error":"{error}","session_id":"s"}}'


def test_a_program_that_retries_a_refused_key_is_ended(here: Path, capsys) -> None:
    refused = f"echo '{again('authentication_failed')}'"
    install(here, "claude", f"{GREETING}{refused}; {refused}; exec sleep 600")
    (found,) = ping.ping_all(None, ["claude"], print, 300.0)
    assert (found.state, found.text) == ("wrong", "authentication_failed")
    assert found.advice == "log in once with `claude`, or set ANTHROPIC_API_KEY; then ask again"
    assert capsys.readouterr().out == "sending one real, paid request to claude, for at most 5 min each ...\n"


@pytest.mark.parametrize(
    ("program", "line", "reason"),
    [
        ("claude", again("rate_limit"), "rate_limit"),
        (
            "codex",
            '{"type":"error","message":"Reconnecting... 2/5 (unexpected status 429 Too Many Requests: Wait a while.)"}',
            "unexpected status 429 Too Many Requests: Wait a while.",
        ),
    ],
)
def test_a_program_that_retries_at_a_limit_is_ended(program: str, line: str, reason: str, here: Path) -> None:
    install(here, program, f"for n in 1 2 3; do echo '{line}'; done; exec sleep 600")
    (found,) = ping.ping_all(None, [program], print, 300.0)
    assert (found.state, found.text) == ("note", f"its account is at a limit: {reason}")
    assert found.advice == "a run would wait for it"


def test_a_program_may_renew_its_login(here: Path) -> None:
    renewed = f"{GREETING}echo '{again('authentication_failed')}'; sleep 0.5; echo '{PONG}'; echo '{DONE}'"
    install(here, "claude", renewed)
    (found,) = ping.ping_all(None, ["claude"], print)
    assert found.state == "well"


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("rate_limit", "its account may ask no more for now: ask again later"),
        ("overloaded", "its provider has too much to do: ask again later"),
        ("unknown", "check that its provider can be reached: many programs retry without saying so"),
    ],
)
def test_the_reason_of_retries_is_reported(reason: str, advice: str, here: Path) -> None:
    told = f"echo '{again(reason)}'"
    install(here, "claude", f"{GREETING}{told}; {told}; touch {here}/told; exec sleep 600")
    runtime, stop = registry.find("claude", {}), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pong = pool.submit(ping.ping, runtime, "", 300.0, stop)
        while not (here / "told").exists() and not pong.done():
            time.sleep(0.02)
        stop.set()
    found = ping.finding_of("claude ping", runtime, pong.result(), 300.0)
    assert (found.state, found.text, found.advice) == ("wrong", f"no answer within 5 min: {reason}", advice)


def test_answers_come_at_once_and_missing_ones_are_named(here: Path) -> None:
    waits = f"while [ ! -e {here}/go ]; do sleep 0.05; done; "
    install(here, "claude", f"{GREETING}{waits}echo '{PONG}'; echo '{DONE}'")
    install(here, "codex", "echo 'Please log in' >&2; exit 1")
    said: list[str] = []
    found = ping.ping_all(None, ["claude", "codex"], said.append, 60.0)
    assert next(found).name == "codex ping"
    (here / "go").touch()
    assert [(check.name, check.state) for check in found] == [("claude ping", "well")]
    assert said == [
        "sending one real, paid request to claude, codex, for at most 1 min each ...",
        "waiting for claude ...",
    ]


def test_programs_of_the_task_and_installed_ones_are_pinged(here: Path, capsys) -> None:
    install(here, "codex", "echo 'Please log in' >&2; exit 1")
    script = json.dumps({"turns": [[{"say": "pong"}]], "choices": {"model": ["m-1", "m-2"]}})
    options = {"command": [sys.executable, "-P", str(AGENT), str(here / "kept"), script]}
    parts = [{"runtime": "acp", "model": "m-2", "options": options}, {"runtime": "native"}]
    write_task(here, {"assignments": parts})
    found = asked(capsys)
    assert {name: check["state"] for name, check in found.items()} == {"acp ping": "well", "codex ping": "note"}
    assert ["c-model", "m-2"] in [json.loads(line) for line in (here / "kept/notes.jsonl").read_text().splitlines()]
    assert asked(capsys, "native")["native ping"]["text"] == "it asks no model: there is nobody to answer"
    found = asked(capsys, "pi", "nobody", code=1)
    assert found["pi ping"]["advice"] == "`npm install -g @mariozechner/pi-coding-agent` installs it"
    assert "there is none of that name" in found["nobody ping"]["text"]


def test_no_program_is_pinged_by_default(here: Path, capsys) -> None:
    install(here, "claude", f"touch {here}/started")
    assert main(("doctor", "--json")) == 0
    assert not (here / "started").exists()
    assert " ping" not in capsys.readouterr().out
