"""The agent's loop: perceive, reason, act, one signal at a time.

A call that requests a heartbeat chains its result into the next step; a call that fails always does, so that the brain
reads the error. There are three answers to errors: a call whose failure may pass is repeated one level deeper; a memory
that contradicts the run gives way to an earlier snapshot, at a resume; a chain that does not end is cut by the limits.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from coral.native.brain import Brain
from coral.native.memory import AgentMemory
from coral.native.output import Output
from coral.native.prompt import HeartbeatSection, heartbeat_sections
from coral.native.situation import AwaitResult, Call, CallFailed, Event, Idle, Prompted, Situation, Submit
from coral.native.snapshots import Snapshots
from coral.native.tool_error import ToolError
from coral.native.toolbox import Toolbox

MAX_DEPTH = 10  # signals deeper than this are dropped
MAX_FAILURES = 6  # in a row; they end the turn


class TurnEnd(StrEnum):
    NOTHING_TO_VARY = "the editable files hold no number and no choice that I could vary"
    FAILURES = "too many failures in a row"
    STEPS = "the limit of steps for one prompt"


@dataclass(frozen=True, slots=True)
class Signal:
    """An event and how deep in a chain it stands: what follows from it stands one deeper."""

    event: Event
    depth: int = 0


def act(signal: Signal, call: Call, event: Event) -> list[Signal]:
    """Return the signals that follow from a call's outcome, the third stage of a step. A failure is always passed
    on."""
    follows = call.request_heartbeat or isinstance(event, CallFailed)
    return [Signal(event, signal.depth + 1)] if follows else []


@dataclass(slots=True)
class Loop:
    """Runs the steps of an agent. `max_steps`: signals that one prompt may lead to."""

    snapshots: Snapshots[AgentMemory]
    output: Output
    brain: Brain
    toolbox: Toolbox
    max_steps: int
    queue: deque[Signal] = field(default_factory=deque)
    failures: int = 0  # in a row

    def run(self, prompt: str) -> TurnEnd:
        """Answer the prompt, then go on attempt by attempt; returns why it ended."""
        self.toolbox.catch_up()
        self._receive(heartbeat_sections(prompt))
        for _ in range(self.max_steps):
            signal = self.queue.popleft() if self.queue else Signal(Idle())
            if signal.depth > MAX_DEPTH:
                self.output.error(f"a chain of more than {MAX_DEPTH} steps was dropped")
                continue
            if isinstance(signal.event, Idle) and self.brain.searches and not self.toolbox.explorer.families():
                return TurnEnd.NOTHING_TO_VARY
            if self.failures >= MAX_FAILURES:
                return TurnEnd.FAILURES
            self._step(signal)
            self.snapshots.save()
        return TurnEnd.STEPS

    def _receive(self, sections: Iterable[HeartbeatSection]) -> None:
        """Put heartbeats at the end of the queue, but none that was answered: they are sent again after a death."""
        answered = self.snapshots.memory.answered
        self.queue.extend(Signal(Prompted(section)) for section in sections if section.id not in answered)

    def _step(self, signal: Signal) -> None:
        observation = self.toolbox.observe(signal.event)  # first: it updates the memory
        following: list[Signal] = []
        for call in self._unfinished(signal.event) or self.brain.reason(
            Situation(self.snapshots.memory, observation), signal.event
        ):
            following += act(signal, call, self._perform(call))
        if isinstance(signal.event, Prompted):
            self.snapshots.memory = self.snapshots.memory.mark_answered(signal.event.section.id)
        self.queue.extendleft(reversed(following))
        self._receive(self.toolbox.inline)
        self.toolbox.inline.clear()

    def _unfinished(self, event: Event) -> tuple[Call, ...]:
        """Return the call that finishes what an interrupt has cut off, before the brain begins with something new."""
        memory = self.snapshots.memory
        if isinstance(event, Idle) and memory.pending is not None:
            return (AwaitResult(trial=memory.pending),)
        if isinstance(event, Idle) and memory.unsubmitted is not None:
            return (Submit(candidate=memory.unsubmitted),)
        return ()

    def _perform(self, call: Call) -> Event:
        try:
            event = self.toolbox.perform(call)
        except ToolError as problem:
            self.failures += 1
            self.output.error(str(problem))
            return CallFailed(call, str(problem), problem.transient)
        if call.request_heartbeat:
            self.failures = 0
        return event
