"""The real process, interrupted or killed at any moment: it resumes with every completed step and repeats nothing."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

import pytest
from cases import CASES, TIMES
from llm_agent import base_url, call
from model_server import Asked, ModelServer, Step
from native_agent import publish_submissions
from native_task import write_task
from real_runs import coral_process, wait_until

from attempts.inbox import submission_ids
from attempts.store import Store
from coral.config.load import load
from coral.native.llm.conversation import AnswerMessage, HeldCall, LlmMemory, ToolCall
from coral.native.llm.main import EXIT_FAILED, build
from coral.native.llm.output import LlmOutput
from coral.native.llm.settings import LlmOptions
from coral.native.snapshots import Snapshots
from coral.runs.create import create_run
from workspace.layout import Layout


@contextmanager
def grading(layout: Layout) -> Iterator[None]:
    """Every submission gets a score, meanwhile."""
    over = threading.Event()

    def grade() -> None:
        while not over.wait(0.02):
            publish_submissions(layout)

    thread = threading.Thread(target=grade)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def begin(layout: Layout, server: ModelServer, prompt: str, *, resume: bool) -> "subprocess.Popen[bytes]":
    options = {"brain": "llm", "base_url": base_url(server, "chat"), "max_steps": 1000}
    state = str(layout.state("agent-1"))
    argv = [sys.executable, "-P", "-m", "coral.native", "--session", "s-1", "--state", state, "--model", "m"]
    argv += [*(["--resume"] if resume else []), "--options", json.dumps(options)]
    environment = {**os.environ, "CORAL_RUN": str(layout.root), "CORAL_AGENT": "agent-1"}
    output = (layout.root / "printed.jsonl").open("ab")
    with output:
        process = subprocess.Popen(
            argv,
            cwd=layout.clone("agent-1"),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    assert process.stdin is not None
    process.stdin.write(prompt.encode())
    process.stdin.close()
    return process


@pytest.mark.slow
def test_no_completed_step_is_lost_and_nothing_is_submitted_twice(tmp_path: Path) -> None:
    layout = create_run(load(write_task(tmp_path / "task"), ["agents.count=1"]), tmp_path / "runs", lambda _: None)
    numbers, random = count(1), Random(14)

    def script(asked: Asked) -> Step:
        number = next(numbers)
        content = json.dumps({"points": [{"x": number / 1e4, "y": 0.5}]})
        calls = [call("write_file", path="points.json", content=content), call("submit", title=f"try {number}")]
        return Step(calls=calls)

    with ModelServer(script) as server, grading(layout):
        for death in range(CASES["models"]["deaths"] * TIMES):
            asked = len(server.asked)
            begun = (layout.state("agent-1") / "sessions" / "s-1").exists()  # else there is nothing to resume
            process = begin(layout, server, f"launch {death}", resume=begun)
            published = len(Store(layout.attempts).numbers())
            moments: list[Callable[[], bool]] = [
                lambda: True,  # in the start
                lambda: len(server.asked) > asked,  # noqa: B023  around the first calls
                lambda: len(Store(layout.attempts).numbers()) > published,  # noqa: B023  around a grade
            ]
            wait_until(moments[death % 3])
            time.sleep(random.random() * 0.3)
            kill = random.choice([signal.SIGINT, signal.SIGKILL])
            os.killpg(process.pid, kill)
            # In its first milliseconds Python itself is interrupted: the exit code is 1, or SIGINT's own.
            ends = (130, 1, -signal.SIGINT) if kill == signal.SIGINT else (-signal.SIGKILL,)
            assert process.wait(60) in ends
            check_memory(layout)
    store = Store(layout.attempts)
    titles = [attempt.title for attempt in map(store.read, store.numbers()) if attempt.number]
    assert len(titles) > 3
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("held", [False, True])
def test_a_submission_that_was_cut_off_gets_its_own_result(tmp_path: Path, held: bool) -> None:
    """An earlier session has submitted, too; this one is cut off before its submission, and then after it."""
    layout = create_run(load(write_task(tmp_path / "task"), ["agents.count=1"]), tmp_path / "runs", lambda _: None)
    clone, made = layout.clone("agent-1"), ToolCall(id="c00000101", name="submit", arguments='{"title": "later"}')
    waiting = LlmMemory(session="s-1", started=made.id).prompt("go")
    waiting = (
        replace(waiting, held=(HeldCall(call=made, steps=3),)) if held else waiting.answer(AnswerMessage(calls=(made,)))
    )

    def recovered(before: str | None) -> LlmMemory:
        snapshots = Snapshots.create(tmp_path / "state", "s-1", LlmMemory)
        snapshots.memory = replace(waiting, submitted_before=before)
        agent = build("m", LlmOptions(), snapshots, LlmOutput(), clone, {"CORAL_AGENT": "agent-1"})
        agent.recover()
        return snapshots.memory

    def submit(number: int) -> str:
        (clone / "points.json").write_text(json.dumps({"points": [{"x": number / 10, "y": 0.5}]}))
        assert coral_process("eval", "-m", f"try {number}", "--no-wait", cwd=clone).returncode == 0
        publish_submissions(layout)
        return submission_ids(layout.attempts, "agent-1")[-1]

    first = submit(1)
    for before in (None, first):  # before and after the tool had begun
        memory = recovered(before)
        assert "an interrupt came before it was submitted" in memory.messages[-1].text
        assert memory.attempts == {}
    submit(2)
    memory = recovered(first)
    assert list(memory.attempts) == ["2"]
    assert "#2 " in memory.messages[-1].text
    assert (memory.started, memory.submitted_before, memory.held) == ("", None, ())


def check_memory(layout: Layout) -> None:
    """What was printed as done is in memory, and so is its result; no call has two."""
    snapshots = Snapshots.resume(layout.state("agent-1"), "s-1", LlmMemory)
    if snapshots is None:
        return  # it died before it had begun
    lines = [line for line in (layout.root / "printed.jsonl").read_text().splitlines() if line.startswith("{")]
    done = [line["tool"]["id"] for line in map(json.loads, lines) if line["type"] == "tool" and line["tool"]["over"]]
    kept = [getattr(message, "call", "") for message in snapshots.memory.messages]
    assert len(done) == len(set(done))
    assert set(done) <= set(kept)


def test_a_model_that_refuses_the_key_ends_the_launch(tmp_path: Path) -> None:
    layout = create_run(load(write_task(tmp_path / "task"), ["agents.count=1"]), tmp_path / "runs", lambda _: None)
    with ModelServer([Step(error="denied", times=9)]) as server:
        process = begin(layout, server, "go", resume=False)
        assert process.wait(60) == EXIT_FAILED
    failed = [line for line in (layout.root / "printed.jsonl").read_text().splitlines() if '"failed"' in line]
    assert json.loads(failed[0])["failed"]["status"] == 401
