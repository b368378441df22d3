"""Real agent programs, launch by launch: started, heard and judged as the supervisor does it, by the same parts."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_server import ModelServer
from real_runs import wait_until

from coral.agent_setup.launch import fill_state_folder, launch_environment
from coral.fleet.events import Ending, OutputSeen
from coral.processes import environment, process
from coral.processes.process import HeldChild, Identity, Program
from coral.runtimes.line_tail import LineTail
from coral.runtimes.messages import ReplyParts
from coral.runtimes.model import LaunchSpec, OutputEvent, Runtime
from coral.supervisor.output_monitor import OutputMonitor
from workspace.layout import Layout

Drive = Callable[..., "tuple[ModelServer, Desk]"]  # a fixture: a program's name, its script, its options
Mixed = Callable[..., "tuple[ModelServer, list[dict[str, object]]]"]  # a fixture: programs' names, their script
Apart = Callable[..., "tuple[dict[str, ModelServer], list[dict[str, object]]]"]  # a fixture: scripts, who refuses
GRACE = 30.0  # seconds for an interrupted program; longer than the supervisor gives it, for machines that do much else
PATIENCE = 120.0  # seconds for what a program does by itself; it is never waited for without a condition


@dataclass(slots=True)
class Ended:
    """How a launch ended. `heard`: whether its output acknowledged the prompt, as the fleet reckons; `until`: when
    the limit ends that it met."""

    code: int
    ending: Ending
    session: str
    heard: bool
    until: float | None
    signs: list[OutputEvent]

    @property
    def replies(self) -> str:
        return "\n".join(sign.reply for sign in self.signs if sign.reply)


class Launch:
    """One launch under way."""

    def __init__(self, runtime: Runtime, held: HeldChild, monitor: OutputMonitor, tag: str, files: Program) -> None:
        self._runtime = runtime
        self._held = held
        self._ear = monitor
        self._tag = tag
        self._files = files
        self._interrupted = False
        self.heard = False

    @property
    def output(self) -> str:
        return self._files.stdout.read_text(errors="replace")

    def interrupt(self) -> None:
        process.interrupt(self._held.identity)
        self._interrupted = True

    def terminate(self) -> None:
        process.terminate(self._held.identity, self._tag)

    def kill(self) -> None:
        process.kill(self._held.identity, self._tag)

    def wait_for(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until it holds; at once a failure with the program's own words if the program ends first."""
        over: Callable[[], bool] = lambda: self._held.child.poll() is not None  # noqa: E731
        wait_until(lambda: condition() or over(), PATIENCE, what)
        assert condition(), f"it ended before {what}: {self.words}"

    @property
    def words(self) -> str:
        return f"{self.output[-3000:]}\n{self._files.stderr.read_text(errors='replace')[-3000:]}"

    def hear(self) -> None:
        """Read what it has printed so far."""
        while self._ear.tail.has_more:
            self._take(self._ear.read(0.0))

    def hear_until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> bool:
        """Listen to it until the condition holds, or it ends, or the time is over. Returns whether it holds."""
        deadline = time.monotonic() + seconds
        while not (holds := bool(condition())) and self._held.child.poll() is None and time.monotonic() < deadline:
            self.hear()
            time.sleep(0.01)
        return holds

    def is_left(self) -> list[Identity]:
        """Return the processes that outlive it, once it has ended itself."""
        self._wait()
        return process.members(self._held.identity, self._tag)

    def leaves_nothing(self) -> bool:
        """Return whether everything it started ends by itself: what it ended may take a moment to be gone."""
        wait_until(lambda: not self.is_left(), PATIENCE, "the end of everything it started")
        return True

    def end(self) -> Ended:
        """Wait for its end, after an interrupt no longer than the supervisor does, and end what it left."""
        code = self._wait()
        wait_until(self._is_gone, PATIENCE, "the end of what it left")
        self.hear()
        self._take(self._ear.read(0.0, ended=True))
        said = self._ear.summary()
        ending = self._runtime.judge(code, said)
        return Ended(code, ending, said.session, self.heard, said.limit_until, self._signs())

    def _take(self, seen: list[OutputSeen]) -> None:
        self.heard = self.heard or any(event.has_prompt for event in seen)

    def _wait(self) -> int:
        if self._interrupted:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._held.child.wait(GRACE)
            if self._held.child.poll() is None:
                self.terminate()
        try:
            return self._held.child.wait(PATIENCE)
        except subprocess.TimeoutExpired as error:
            self.kill()
            raise AssertionError(f"it did not end within {PATIENCE:g} seconds: {self.words}") from error

    def _is_gone(self) -> bool:
        self.kill()
        return not process.members(self._held.identity, self._tag)

    def _signs(self) -> list[OutputEvent]:
        speech = ReplyParts()
        read = (self._runtime.read(line) for line in self._files.stdout.read_bytes().splitlines())
        return [*(sign for signs in read for sign in speech.join(signs)), *speech.rest()]


class Desk:
    """An agent's place: a home of its own, a repository, the files of its launches."""

    def __init__(self, folder: Path, runtime: Runtime, model: str) -> None:
        self.runtime = runtime
        self.layout = Layout(folder / "run")
        self.clone = self.layout.clone("agent-1")
        self.model = model
        self.money: float | None = None  # what a launch may use
        self._launches = 0
        self._alive: list[Launch] = []
        for folder in (self.clone, self.layout.state("agent-1"), self.layout.prompt("agent-1", 1).parent):
            folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", str(self.clone)], check=True, env=environment.base())

    def launch(self, prompt: str, session: str | None = None) -> Launch:
        """Start the program with a prompt, in a new conversation or in one that there is."""
        self._launches += 1
        agent, number, layout = "agent-1", self._launches, self.layout
        job = LaunchSpec(
            agent=agent,
            launch=number,
            session=session,
            clone=self.clone,
            state=layout.state(agent),
            run_root=layout.root,
            model=self.model,
            money=self.money,
        )
        command = self.runtime.command(job)
        fill_state_folder(command, layout.state(agent))
        layout.prompt(agent, number).write_text(prompt)
        tag = f"driven-{os.getpid()}-{layout.root.stat().st_ino}/{agent}/{number}"
        program = Program(
            argv=command.argv,
            env=launch_environment(environment.base(), command),
            cwd=self.clone,
            stdin=layout.prompt(agent, number),
            stdout=layout.output(agent, number),
            stderr=layout.errors(agent, number),
            tag=tag,
        )
        held = process.start(program)
        monitor = OutputMonitor(
            agent, number, self.runtime, LineTail(program.stdout), program.stderr, command.session or session
        )
        launch = Launch(self.runtime, held, monitor, tag, program)
        self._alive.append(launch)
        held.release()
        return launch

    def clean(self) -> None:
        """End whatever a failed test left."""
        for launch in self._alive:
            launch.kill()
