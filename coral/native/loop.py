"""The agent's loop: perceive, reason, act, one signal at a time.

A call that requests a heartbeat chains its result into the next step; a tool that fails always does, so that the brain
reads the error. What goes wrong is met in three tiers: an error that may pass is tried again one level deeper; a memory
that contradicts the world is rolled back to the snapshot before; a chain that runs away meets the limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from coral.native.brain import Brain
from coral.native.calls import Call
from coral.native.known_attempts import Board
from coral.native.output import Output
from coral.native.prompt import sections
from coral.native.situation import Event, Idle, Prompted, Signal, Trouble, perceive
from coral.native.snapshots import RING, Keeper
from coral.native.tool_error import MemoryFault, ToolError
from coral.native.toolbox import Toolbox

DEEPEST = 10  # signals deeper than this are dropped
STEPS = 400  # signals that one prompt may lead to
TROUBLES = 6  # failures in a row that end the turn


class TurnEnd(StrEnum):
    """Why a turn ended."""

    NOTHING_TO_VARY = "nothing_to_vary"
    FAILURES = "failures"
    STEPS = "steps"


def act(signal: Signal, call: Call, event: Event) -> list[Signal]:
    """The third stage: what follows from a call's outcome. Pure. Trouble is always heard of."""
    return [signal.then(event)] if call.request_heartbeat or isinstance(event, Trouble) else []


@dataclass(slots=True)
class Loop:
    keeper: Keeper
    output: Output
    brain: Brain
    toolbox: Toolbox
    steps: int = STEPS
    queue: deque[Signal] = field(default_factory=deque)
    troubles: int = 0

    def run(self, prompt: str) -> TurnEnd:
        """Answer the prompt, then go on attempt by attempt; returns why it ended."""
        self._wake()
        self._ask(prompt)
        for _ in range(self.steps):
            signal = self.queue.popleft() if self.queue else Signal(Idle())
            if signal.depth > DEEPEST:
                self.output.error(f"a chain of more than {DEEPEST} steps was dropped")
                continue
            if self._nothing_to_do(signal):
                return TurnEnd.NOTHING_TO_VARY
            if self.troubles >= TROUBLES:
                return TurnEnd.FAILURES
            self._step(signal)
            self.keeper.save()
        return TurnEnd.STEPS

    def _wake(self) -> None:
        """Bring memory up to date. If it contradicts the world: the snapshots before it, then a board read afresh."""
        for _ in range(RING):
            try:
                return self.toolbox.catch_up()
            except MemoryFault as problem:
                back = self.keeper.roll_back()
                self.output.error(f"{problem}; I go back to {'the memory before' if back else 'the records'}")
                if not back:
                    break
        self.keeper.memory = replace(self.keeper.memory, board=Board(), pending=None, work=None)
        return self.toolbox.catch_up()

    def _ask(self, prompt: str) -> None:
        """Each heartbeat section is a signal of its own, in order."""
        self.queue.extend(Signal(Prompted((section,))) for section in sections(prompt))

    def _step(self, signal: Signal) -> None:
        world = self.toolbox.gather(signal.event)  # first: it brings the board in memory up to date
        situation = perceive(self.keeper.memory, world)
        follow: list[Signal] = []
        for call in self.brain.reason(situation, signal.event):
            follow += self._perform(signal, call)
        if isinstance(signal.event, Prompted):
            self._answered(signal.event)
        self.queue.extendleft(reversed(follow))
        self.queue.extend(Signal(Prompted((section,))) for section in self.toolbox.inline)
        self.toolbox.inline.clear()

    def _perform(self, signal: Signal, call: Call) -> Iterable[Signal]:
        try:
            event = self.toolbox.perform(call)
            self.troubles = 0 if call.request_heartbeat else self.troubles
        except ToolError as problem:
            self.troubles += 1
            self.output.error(str(problem))
            event = Trouble(call, str(problem), problem.again)
        return act(signal, call, event)

    def _answered(self, asked: Prompted) -> None:
        for section in asked.sections:
            self.keeper.memory = self.keeper.memory.answer(section.id)

    def _nothing_to_do(self, signal: Signal) -> bool:
        return isinstance(signal.event, Idle) and not self.toolbox.explorer.families()
