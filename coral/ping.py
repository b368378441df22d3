"""One word from an agent program: that it starts, that its login holds, that its model answers.

It is started as in a run, by its own runtime, but in a folder that is thrown away; nothing that it starts stays behind.
"""

import contextlib
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from attempts.fields import one_line
from coral import environment, equip, process, runtimes
from coral.config.agents import Driven
from coral.config.load import Config
from coral.crew import PAYING_NOBODY, parts
from coral.doctor import Finding, State
from coral.fleet.events import Ending
from coral.listen import Ear, Tail, end_of
from coral.runtimes.agent import AgentProgram
from coral.runtimes.model import Job, Runtime, Usage
from coral.transcript import Kind, entries
from coral.usage import money, tokens
from workspace.layout import Layout

PROMPT = "This is a test of the connection. Reply with the single word pong, and use no tool.\n"
SECONDS = 120.0
GRACE = 10.0  # for a program that did not answer in time
LOOK_SECONDS = 0.2  # how often it is looked whether anybody still waits for the answer
AGENT = "agent-1"


@dataclass(frozen=True, slots=True)
class Pong:
    """`ending` is None where there was no end in time. `until`: when a limit ends, if that was told."""

    ending: Ending | None
    seconds: float
    reply: str
    error: str
    until: float | None
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class _Asked:
    """`wanted`: by name, or by the task; whatever else is here is asked, and may be without a login."""

    name: str
    part: Driven | None
    wanted: bool


def pings(config: Config | None, names: Sequence[str], seconds: float = SECONDS) -> Iterator[Finding]:
    """One finding each: of the runtimes by these names, else of the task's and of every program that is here."""
    stop = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        try:
            yield from pool.map(lambda each: _finding(each, seconds, stop), whom(config, names))
        finally:
            stop.set()  # whoever is tired of waiting leaves nobody behind


def whom(config: Config | None, names: Sequence[str]) -> list[_Asked]:
    driven = parts(config) if config is not None else ()
    asked = [_Asked(part.runtime, part, True) for part in driven if not names or part.runtime in names]
    asked = [each for each in asked if names or each.name not in PAYING_NOBODY]
    known = {each.name for each in asked}
    if names:
        return asked + [_Asked(name, None, True) for name in dict.fromkeys(names) if name not in known]
    found = [name for name in runtimes.RUNTIMES if isinstance(runtimes.find(name, {}), AgentProgram)]
    return asked + [_Asked(name, None, False) for name in found if name not in known and not runtimes.check(name, {})]


def _finding(asked: _Asked, seconds: float, stop: threading.Event) -> Finding:
    name, options = f"{asked.name} ping", asked.part.options if asked.part else {}
    if asked.name in PAYING_NOBODY:
        return Finding(name, State.WELL, "it asks no model: there is nobody to answer")
    model = asked.part.model if asked.part else ""
    if problems := runtimes.check(asked.name, options, model):
        said, _, how = problems[0].partition("; ")
        return Finding(name, State.WRONG, said, how or "see agents in task.yaml")
    runtime = runtimes.find(asked.name, options)
    try:
        pong = ping(runtime, model, seconds, stop)
    except OSError as error:
        return Finding(name, State.WRONG, f"it cannot be started: {error}")
    found = _meaning(name, runtime, pong, seconds)
    return found if asked.wanted or found.state is not State.WRONG else replace(found, state=State.NOTE)


def _meaning(name: str, runtime: Runtime, pong: Pong, seconds: float) -> Finding:
    error = pong.error or "it does not say why"
    if pong.ending is Ending.CLEAN:
        used = _used(pong.usage)
        said = f"answered {one_line(pong.reply, 60)!r}" if pong.reply else "ended its turn without a word"
        text = f"{said} after {pong.seconds:.1f} s{f', {used}' if used else ''}"
        return Finding(name, State.WELL if pong.reply else State.NOTE, text)
    if pong.ending is Ending.LIMIT:
        until = f" until {datetime.fromtimestamp(pong.until):%a %H:%M}" if pong.until is not None else ""
        return Finding(name, State.NOTE, f"its account is at a limit{until}: {error}", "a run would wait for it")
    if pong.ending is Ending.TERMINAL:
        return Finding(name, State.WRONG, error, _login(runtime))
    if pong.ending is None:
        advice = "look whether its provider can be reached: many ask again and again without a word"
        text = f"no answer within {seconds:g} s"
        return Finding(name, State.WRONG, f"{text}: {pong.error}" if pong.error else text, advice)
    return Finding(name, State.WRONG, f"it {pong.ending}: {error}", "start it by hand, as you would without Coral")


def _login(runtime: Runtime) -> str:
    if not isinstance(runtime, AgentProgram):
        return "mend what it says, and ask again"
    return f"log in with `{runtime.program}`, or set {runtime.keys[0]}; then ask again"


def _used(usage: Usage | None) -> str:
    if usage is None:
        return ""
    cost = money(usage.cost) if usage.cost else ""
    count = usage.input + usage.output
    return ", ".join([*([f"{tokens(count)} tokens"] if count else []), *([cost] if cost else [])])


def ping(runtime: Runtime, model: str, seconds: float, stop: threading.Event) -> Pong:
    """Have the program answer one prompt, until it is to `stop`. OSError where it cannot be started."""
    with tempfile.TemporaryDirectory(prefix="coral-ping-", ignore_cleanup_errors=True) as made:
        layout = Layout(Path(made).resolve())
        for folder in (layout.clone(AGENT), layout.state(AGENT), layout.logs(AGENT)):
            folder.mkdir(parents=True)
        layout.prompt(AGENT, 1).write_text(PROMPT)
        return _ask(runtime, layout, model, seconds, stop)


def _ask(runtime: Runtime, layout: Layout, model: str, seconds: float, stop: threading.Event) -> Pong:
    clone, state = layout.clone(AGENT), layout.state(AGENT)
    job = Job(agent=AGENT, launch=1, session=None, clone=clone, state=state, run_root=layout.root, model=model)
    command = runtime.command(job)
    equip.settle(command, state)
    output, errors = layout.output(AGENT, 1), layout.errors(AGENT, 1)
    env = equip.environment(environment.base(), command)
    tag = f"{layout.root.name}/{os.getpid()}"
    program = process.Program(command.argv, env, clone, layout.prompt(AGENT, 1), output, errors, tag)
    began = time.monotonic()
    code, words = _run(program, began + seconds, stop)
    ear = Ear(AGENT, 1, runtime, Tail(output), errors, command.session or None)
    while ear.tail.is_behind:
        ear.listen(0.0)
    ear.listen(0.0, ended=True)
    said, told = ear.said(), list(entries(layout, AGENT, 1, runtime))
    ending = runtime.judge(code, said) if code is not None else None
    reply = next((each.text for each in reversed(told) if each.kind is Kind.REPLY), "")
    usage = next((each.usage for each in told if each.usage is not None), None)
    last = next((line for line in reversed(words.splitlines()) if line.strip()), "")
    error = one_line(said.error or last, 300)
    return Pong(ending, time.monotonic() - began, reply, error, said.limit_until, usage)


def _run(program: process.Program, deadline: float, stop: threading.Event) -> tuple[int | None, str]:
    """Its exit code, None where it did not end in time; and the end of its stderr, before anybody ended anything."""
    held = process.start(program)
    try:
        held.release()
        ended = _ended(held.child, deadline, stop)
        words = end_of(program.stderr)
        if not ended:
            process.interrupt(held.identity)
            _ended(held.child, time.monotonic() + GRACE, stop)
        return held.child.returncode if ended else None, words
    finally:
        process.kill(held.identity, program.tag)
        held.child.wait()


def _ended(child: "subprocess.Popen[bytes]", deadline: float, stop: threading.Event) -> bool:
    while child.poll() is None and time.monotonic() < deadline and not stop.is_set():
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(LOOK_SECONDS)
    return child.returncode is not None
