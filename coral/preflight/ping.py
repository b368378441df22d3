"""Checks whether agent programs start, their logins are valid and their models answer, by asking each for one word.

A program is started by its runtime as in a run, but in a temporary folder, and none of its processes is left behind. A
program whose login is refused or whose account is at a limit may retry for minutes before it reports that; therefore
its messages about retries are read, too.
"""

import contextlib
import math
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from attempts.fields import one_line
from coral.agent_setup.launch import fill_state_folder, launch_environment
from coral.agent_setup.roster import assignments_of
from coral.config.load import Config
from coral.errors import CoralError
from coral.fleet.events import Ending
from coral.preflight.check import Check, Health
from coral.processes import environment, process
from coral.processes.launch_tags import tag_of_one
from coral.runtimes import registry
from coral.runtimes.agent import AgentProgram
from coral.runtimes.json_lines import Reader
from coral.runtimes.limits import Meaning, Patterns
from coral.runtimes.line_tail import LineTail, end_of
from coral.runtimes.model import LaunchSpec, Runtime, Usage
from coral.supervisor.output_monitor import OutputMonitor
from coral.views.format import duration, moment, spending
from coral.views.transcript import EntryKind, entries
from workspace.layout import Layout

PROMPT = "This is a test of the connection. Reply with the single word pong, and use no tool.\n"
SECONDS = 120.0
GRACE = 10.0  # seconds for a program that did not answer in time to end by itself
POLL_SECONDS = 0.2  # between two checks whether anybody still waits for the answer
# How many retries in a row show that no answer will come, by their meaning: after a first refusal a program may renew
# its login, and a rate limit may pass within seconds.
MAX_RETRIES = {Ending.TERMINAL: 2, Ending.LIMIT: 3}
AGENT = "agent-1"
# Messages of temporary errors, and what to do about them.
PASSING = (
    (r"(?i)rate.?limit|too many requests|\b429\b", "its account may ask no more for now: ask again later"),
    (r"(?i)overloaded|\b5(03|29)\b", "its provider has too much to do: ask again later"),
)


@dataclass(frozen=True, slots=True)
class Pong:
    """What came of a ping. `ending`: None if the program did not end in time. `until`: when a limit ends, in seconds
    since the epoch, if that is known."""

    ending: Ending | None
    seconds: float
    reply: str
    error: str
    until: float | None
    usage: Usage | None


@dataclass(frozen=True)
class _Candidate:
    """A runtime to be pinged. `wanted`: whether the user or the task names it; other installed programs are pinged,
    too, and it is no error if they have no login."""

    name: str
    wanted: bool
    options: Mapping[str, object] = field(default_factory=dict)
    model: str = ""

    @cached_property
    def runtime(self) -> Runtime | None:
        """The runtime; None if there is none of that name."""
        with contextlib.suppress(CoralError):  # `_finding` says why
            return registry.find(self.name, self.options)
        return None

    @property
    def needs_no_model(self) -> bool:
        return self.runtime is not None and not self.runtime.account


def ping_all(
    config: Config | None, names: Sequence[str], say: Callable[[str], None], seconds: float = SECONDS
) -> Iterator[Check]:
    """Yield one check for each of the runtimes `names`, as they finish; without names, for the runtimes of the task and
    every installed program. `say` is called with a text about who is asked and who has not answered yet. `seconds`: how
    long each may take."""
    stop = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        try:
            candidates = candidates_for(config, names)
            asked = {pool.submit(_finding, candidate, seconds, stop): candidate.name for candidate in candidates}
            if paid := [candidate.name for candidate in candidates if not candidate.needs_no_model]:
                say(f"sending one real, paid request to {_listed(paid)}, for at most {duration(seconds)} each ...")
            for done in as_completed(list(asked)):
                del asked[done]
                yield done.result()
                if asked:
                    say(f"waiting for {_listed(asked.values())} ...")
        finally:
            stop.set()  # an interrupt must leave no program behind


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))


def candidates_for(config: Config | None, names: Sequence[str]) -> list[_Candidate]:
    driven = assignments_of(config) if config is not None else ()
    asked = [_Candidate(part.runtime, True, part.options, part.model) for part in driven]
    if names:
        asked = [candidate for candidate in asked if candidate.name in names]
        known = {candidate.name for candidate in asked}
        return asked + [_Candidate(name, True) for name in dict.fromkeys(names) if name not in known]
    asked = [candidate for candidate in asked if not candidate.needs_no_model]
    known = {candidate.name for candidate in asked}
    others = [_Candidate(name, False) for name in registry.RUNTIMES if name not in known]
    return asked + [other for other in others if isinstance(other.runtime, AgentProgram) and not other.runtime.check()]


def _finding(asked: _Candidate, seconds: float, stop: threading.Event) -> Check:
    name = f"{asked.name} ping"
    if asked.needs_no_model:
        return Check(name, Health.WELL, "it asks no model: there is nobody to answer")
    if problems := registry.check(asked.name, asked.options, asked.model):
        problem, _, how = problems[0].partition("; ")
        return Check(name, Health.WRONG, problem, how or "see agents in task.yaml")
    runtime = asked.runtime or registry.find(asked.name, asked.options)
    try:
        pong = ping(runtime, asked.model, seconds, stop)
    except OSError as error:
        return Check(name, Health.WRONG, f"it cannot be started: {error}")
    found = finding_of(name, runtime, pong, seconds)
    return found if asked.wanted or found.state is not Health.WRONG else replace(found, state=Health.NOTE)


def finding_of(name: str, runtime: Runtime, pong: Pong, seconds: float) -> Check:
    error = pong.error or "it does not say why"
    if pong.ending is Ending.CLEAN:
        usage = pong.usage
        used = spending({"tokens": usage.input + usage.output, "money": usage.cost or None}) if usage else ""
        answer = f"answered {one_line(pong.reply, 60)!r}" if pong.reply else "ended its turn without a word"
        text = f"{answer} after {duration(pong.seconds)}{f', {used}' if used else ''}"
        return Check(name, Health.WELL if pong.reply else Health.NOTE, text)
    if pong.ending is Ending.LIMIT:
        until = f" until {moment(pong.until)}" if pong.until is not None else ""
        return Check(name, Health.NOTE, f"its account is at a limit{until}: {error}", "a run would wait for it")
    if pong.ending in (Ending.TERMINAL, Ending.DENIED):
        return Check(name, Health.WRONG, error, _login(runtime))
    passing = next((advice for pattern, advice in PASSING if re.search(pattern, pong.error)), "")
    if pong.ending is None:
        advice = "check that its provider can be reached: many programs retry without saying so"
        text = f"no answer within {duration(seconds)}"
        return Check(name, Health.WRONG, f"{text}: {pong.error}" if pong.error else text, passing or advice)
    advice = passing or "start it by hand, as you would without Coral"
    return Check(name, Health.WRONG, f"it {pong.ending}: {error}", advice)


def _login(runtime: Runtime) -> str:
    if not isinstance(runtime, AgentProgram):
        return "fix that, and ask again"
    return f"{runtime.how_to_log_in}; then ask again"


def ping(runtime: Runtime, model: str, seconds: float, stop: threading.Event) -> Pong:
    """Have the program answer one prompt, and end it after `seconds` or when `stop` is set. OSError if it cannot be
    started."""
    with tempfile.TemporaryDirectory(prefix="coral-ping-", ignore_cleanup_errors=True) as made:
        layout = Layout(Path(made).resolve())
        for folder in (layout.clone(AGENT), layout.state(AGENT), layout.logs(AGENT)):
            folder.mkdir(parents=True)
        layout.prompt(AGENT, 1).write_text(PROMPT)
        return _ask(runtime, layout, model, seconds, stop)


def _ask(runtime: Runtime, layout: Layout, model: str, seconds: float, stop: threading.Event) -> Pong:
    clone, state = layout.clone(AGENT), layout.state(AGENT)
    spec = LaunchSpec(agent=AGENT, launch=1, session=None, clone=clone, state=state, run_root=layout.root, model=model)
    command = runtime.command(spec)
    fill_state_folder(command, state)
    output, errors = layout.output(AGENT, 1), layout.errors(AGENT, 1)
    env = launch_environment(environment.base(), command)
    tag = tag_of_one(f"{layout.root.name}/{os.getpid()}")
    program = process.Program(command.argv, env, clone, layout.prompt(AGENT, 1), output, errors, tag)
    began = time.monotonic()
    monitor = OutputMonitor(AGENT, 1, runtime, LineTail(output), errors, command.session or None)
    code, words = _run(program, began + seconds, stop, monitor)
    retries = _meaning_of_retries(monitor) if code is None else None
    while monitor.tail.has_more:
        monitor.read(0.0)
    monitor.read(0.0, ended=True)
    summary, printed = monitor.summary(), list(entries(layout, AGENT, 1, runtime))
    ending = retries.ending if retries is not None else None if code is None else runtime.judge(code, summary)
    reply = next((entry.text for entry in reversed(printed) if entry.kind is EntryKind.REPLY), "")
    usage = next((entry.usage for entry in printed if entry.usage is not None), None)
    last = next((line for line in reversed(words.splitlines()) if line.strip()), "")
    error = one_line(monitor.last_retry if retries is not None else summary.error or monitor.last_retry or last, 300)
    until = retries.until if retries is not None else summary.limit_until
    return Pong(ending, time.monotonic() - began, reply, error, until, usage)


def _meaning_of_retries(monitor: OutputMonitor) -> Meaning | None:
    """Return what the program's retries mean, if there were so many in a row that no answer is to be expected; else
    None."""
    monitor.read(0.0)
    patterns = monitor.runtime.patterns if isinstance(monitor.runtime, Reader) else Patterns({})
    meaning = patterns.meaning(monitor.last_retry, time.time())
    if meaning is None or monitor.count.in_a_row < MAX_RETRIES.get(meaning.ending, math.inf):
        return None
    return meaning


def _run(
    program: process.Program, deadline: float, stop: threading.Event, monitor: OutputMonitor
) -> tuple[int | None, str]:
    """Run the program. Returns its exit code, None if it had to be ended, and the end of its stderr."""
    held = process.start(program)
    try:
        held.release()
        ended = _ended(held.child, deadline, lambda: stop.is_set() or _meaning_of_retries(monitor) is not None)
        words = end_of(program.stderr)
        if not ended:
            process.interrupt(held.identity)
            _ended(held.child, time.monotonic() + GRACE, stop.is_set)
        return held.child.returncode if ended else None, words
    finally:
        process.kill_and_wait(held.identity, program.tag)
        held.child.wait()


def _ended(child: "subprocess.Popen[bytes]", deadline: float, is_over: Callable[[], bool]) -> bool:
    while child.poll() is None and time.monotonic() < deadline and not is_over():
        process.wait(child, POLL_SECONDS)
    return child.returncode is not None
