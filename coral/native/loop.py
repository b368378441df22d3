"""The agent's loop: perceive, reason, act, one signal at a time.

A call that requests a heartbeat chains its result into the next step; a call that fails always does, so that the brain
reads the error. There are three answers to errors: a call whose failure may pass is repeated one level deeper; a memory
that contradicts the run gives way to an earlier snapshot, at a resume; a chain that does not end is cut by the limits.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum

from coral.native.brain import Brain
from coral.native.calls import Submit
from coral.native.memory import Candidate
from coral.native.situation import Call, CallDone, CallFailed, Event, Idle, Prompted, Situation
from coral.native.tool_error import ToolError
from coral.native.workbench import SearchBench

MAX_DEPTH = 10  # signals deeper than this are dropped
MAX_FAILURES = 6  # in a row; they end the turn


class TurnEnd(StrEnum):
    NOTHING_TO_VARY = "the editable files hold no number and no choice that I could vary, or more than I can search"
    FAILURES = "too many failures in a row"
    STEPS = "the limit of steps for one prompt"


@dataclass(frozen=True, slots=True)
class Signal:
    """An event and how deep in a chain it stands: what follows from it stands one deeper."""

    event: Event
    depth: int = 0


@dataclass(slots=True)
class Loop:
    """Runs the steps of an agent. `max_steps`: signals that one prompt may lead to."""

    bench: SearchBench
    brain: Brain
    max_steps: int
    queue: deque[Signal] = field(default_factory=deque)
    failures: int = 0  # in a row

    def run(self) -> TurnEnd:
        """Answer the heartbeats that wait in the memory, then make attempt after attempt. Return why it ended."""
        self._queue_heartbeats()
        for _ in range(self.max_steps):
            signal = self.queue.popleft() if self.queue else Signal(Idle())
            if signal.depth > MAX_DEPTH:
                self.bench.output.error(f"a chain of more than {MAX_DEPTH} steps was dropped")
                continue
            if self.failures >= MAX_FAILURES:
                return TurnEnd.FAILURES
            try:
                situation = self.bench.observe(signal.event)
                if isinstance(signal.event, Idle) and self.brain.searches and not situation.families:
                    return TurnEnd.NOTHING_TO_VARY
                self._step(signal, situation)
            finally:  # a heartbeat at which a brain fails is not met again by the next launch
                if isinstance(signal.event, Prompted):
                    self.bench.memory = self.bench.memory.mark_answered(signal.event.section.id)
                self.bench.snapshots.save()
            self._queue_heartbeats()
        return TurnEnd.STEPS

    def _queue_heartbeats(self) -> None:
        """Append the heartbeats that memory holds and the queue does not: those of this prompt, those that an earlier
        launch was interrupted before it answered, and those that `coral eval` printed."""
        queued = {signal.event.section.id for signal in self.queue if isinstance(signal.event, Prompted)}
        new = [section for section in self.bench.memory.waiting if section.id not in queued]
        self.queue.extend(Signal(Prompted(section)) for section in new)

    def _step(self, signal: Signal, situation: Situation) -> None:
        following: list[Signal] = []
        for call in self._unfinished(signal.event) or self.brain.reason(situation, signal.event):
            event = self._perform(call)
            if call.request_heartbeat or isinstance(event, CallFailed):
                following.append(Signal(event, signal.depth + 1))
        self.queue.extendleft(reversed(following))

    def _unfinished(self, event: Event) -> tuple[Call, ...]:
        """Return the call that finishes what an interrupt has cut off, before the brain begins with something new."""
        memory = self.bench.memory
        pending = Candidate(trial=memory.pending, texts={}) if memory.pending is not None else memory.unsubmitted
        return (Submit(candidate=pending),) if pending is not None and isinstance(event, Idle) else ()

    def _perform(self, call: Call) -> Event:
        try:
            event = call.perform(self.bench) or CallDone()
        except ToolError as problem:
            self.failures += 1
            self.bench.output.error(str(problem))
            return CallFailed(call, str(problem), problem.transient)
        if call.request_heartbeat:
            self.failures = 0
        return event
