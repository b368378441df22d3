"""The loop of the brain `llm`: perceive, reason, act, with the gates before each action.

The calls of an answer are performed in order, each once: the start of a call is saved before it and its result after
it. A call with `request_heartbeat` true chains into the next step, one with false yields; a call that fails always
chains, so that the model reads its error. A chain has at most `max_steps` steps; then the outer loop says what follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from attempts.record import Attempt
from coral.native.llm import plugins
from coral.native.llm.conversation import (
    AnswerMessage,
    HeldCall,
    LlmMemory,
    Message,
    PromptMessage,
    ResultMessage,
    ToolCall,
)
from coral.native.llm.gates import Decision, DeferredCall, Gate, GateSignal, RefusedCall
from coral.native.llm.perceive import Perception
from coral.native.llm.request import Reply
from coral.native.llm.toolset import Toolset
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError

if TYPE_CHECKING:
    from coral.native.llm.tools.base import AgentTool

CONTINUE = "Heartbeat. Please continue."
CORRECT = "Heartbeat: a call failed. Read its error, put it right, or do something else."
CUT = (
    "Heartbeat: the limit of its length cut your answer off, so that its end is missing. Go on in shorter answers: "
    "a long file in several edits."
)
HELD_STEPS = 10  # before which a held call is offered to the gates again; then it is dropped
LEAVES_FILES = ("submit", "notes", "skills", "hand_over")  # tools that do something and change no file of the workspace
MOST_CALLS = 16  # of one answer that are performed


class ChainEnd(StrEnum):
    YIELDED = "yielded"  # no call asked for a heartbeat
    CAPPED = "capped"  # `max_steps` steps were made in a row
    REFUSED = "refused"  # the model or its server would not answer
    BUDGET = "budget"  # the launch has made all the steps that it may make


@dataclass(slots=True)
class LlmAgent:
    """Runs chains of steps. `steps`: how many more steps this launch may make."""

    bench: Workbench
    tools: Toolset
    gates: Sequence[Gate]
    perception: Perception
    steps: int
    worked: bool = False  # whether something was changed since the last message of the outer loop
    _current: ToolCall | None = field(default=None)

    @property
    def memory(self) -> LlmMemory:
        return self.bench.memory

    def prompt(self, text: str) -> None:
        """Add a message of the outer loop to the conversation, after the prompts that wait."""
        self.worked = False
        whole = "\n\n".join((*self.memory.waiting, text))
        self.bench.memory = replace(self.memory.prompt(whole), waiting=())
        self._save()

    def receive(self, text: str) -> None:
        """Take in the prompt of a launch. `recover` adds it to the conversation, after it has settled what an interrupt
        has left unfinished."""
        self.bench.memory = replace(self.memory, waiting=(*self.memory.waiting, text))
        self._save()

    def recover(self) -> None:
        """Settle what an interrupt has left: the call that was being performed gets a result and is not performed
        again, nor are the calls after it. Then add the waiting prompts to the conversation."""
        begun = (held_call.call for held_call in self.memory.held if held_call.call.id == self.memory.started)
        for call in (*self.memory.unfinished, *begun):
            try:
                text, failed = self._outcome(call), False
            except ToolError as problem:
                text, failed = str(problem), True
            self._finish(call, text, failed=failed, performed=not failed)
        memory = self.memory
        for text in memory.waiting:
            memory = memory.prompt(text)
        self.bench.memory = replace(memory, waiting=())
        self._save()

    def _outcome(self, call: ToolCall) -> str:
        if call.id != self.memory.started:
            raise ToolError("an interrupt came before this call; it was not performed")
        if call.name != "submit":
            raise ToolError("an interrupt cut this call off; look at what it has done before you repeat it")
        from coral.native.llm.tools.submit import settle_interrupted  # with pydantic, which most starts do without

        self._current = call
        return settle_interrupted(self.bench)

    def chain(self) -> ChainEnd:
        """Make steps until the agent yields or may go no further. ModelError if the model cannot be asked."""
        notice = ""
        while True:
            if self.memory.last_answer is None or not self.memory.unfinished:
                if self.steps <= 0:
                    return ChainEnd.BUDGET
                if self.memory.chain >= self.bench.options.max_steps:
                    return ChainEnd.CAPPED
                self.steps -= 1
                self._offer_held()
                reply = self.perception.reason()
                self._take(reply)
                notice = CUT if reply.cut else _too_many(len(reply.calls))
                if reply.refused and not reply.calls:
                    return ChainEnd.REFUSED
            for call in self.memory.unfinished:
                self._pass(call)
            results = self.memory.last_results
            if not notice and not any(result.chains for result in results):
                return ChainEnd.YIELDED
            failed = any(result.failed for result in results)
            self._tell(notice or (CORRECT if failed else CONTINUE))

    def _take(self, reply: Reply) -> None:
        """Add the answer to memory before any of its calls is performed. The calls get ids of ours: servers repeat
        theirs."""
        begin = f"c{self.memory.message_count + 1:06d}"  # nine letters and digits in all, as some servers demand
        calls = tuple(
            ToolCall(id=f"{begin}{place:02d}", name=call.name, arguments=call.arguments)
            for place, call in enumerate(reply.calls[:MOST_CALLS], 1)
        )
        text = reply.text
        if reply.refused and not text:
            text = "(the model refused to answer)"
        if text.strip() and not calls:
            self.bench.output.text(text)
        elif text.strip():
            self.bench.output.beat("thinking", text)
        message = AnswerMessage(text=text, calls=calls, reasoning=reply.reasoning)
        self.bench.memory = self.memory.answer(message)
        self._save()

    # --- act ------------------------------------------------------------------------------------------------------

    def _signal(self) -> GateSignal:
        memory = self.memory
        return GateSignal(
            depth=memory.chain,
            steps=memory.steps,
            tokens=memory.tokens,
            cost=memory.cost,
            checked=memory.checked,
            failures=memory.failures,
            clone=str(self.bench.clone),
            options=self.bench.options,
        )

    def _decide(self, call: ToolCall) -> Decision:
        """Return the decision on a call. The gates see it among all calls of its answer."""
        answer = self.memory.last_answer
        calls = answer.calls if answer else ()
        return plugins.decide(self.gates, self._signal(), calls, calls.index(call))

    def _pass(self, call: ToolCall) -> None:
        match self._decide(call):
            case RefusedCall(reason=reason):
                self._finish(call, f"refused: {reason}", failed=True, performed=False)
            case DeferredCall(reason=reason):
                memory = replace(self.memory, held=(*self.memory.held, HeldCall(call=call, steps=HELD_STEPS)))
                text = f"held back: {reason}; it is done as soon as it may be"
                self._finish(call, text, failed=False, performed=False, memory=memory)
            case ToolCall() as passed:
                self._perform(replace(passed, id=call.id))

    def _perform(self, call: ToolCall) -> None:
        self._current = call
        try:
            tool = self.tools.read(call)
            # One that fails or is cut off may have changed files, too.
            checked = self.memory.checked and not _changes_files(tool)
            self.bench.memory = replace(self.memory, started=call.id, checked=checked)
            self._save()
            self.bench.output.tool(call.id, call.name, call.arguments)
            text = plugins.perform(tool, self.bench)
        except ToolError as problem:
            self._finish(call, str(problem), failed=True)
        else:
            self._finish(call, text, failed=False)

    def settle(self, text: str, attempt: Attempt, heartbeats: tuple[str, ...]) -> None:
        """Record the result of the submission that is being performed, before its tool returns the same; count the
        attempt, and keep the heartbeats that came with its grade. All is saved at once: after a death in between, the
        attempt would pass for that of a later call, and nobody sends the heartbeats again."""
        memory = self.memory.new_attempt(attempt.number, attempt.commit)
        memory = replace(memory, waiting=(*memory.waiting, *heartbeats))
        assert self._current is not None
        self._finish(self._current, text, failed=False, memory=memory)

    def _finish(
        self, call: ToolCall, text: str, *, failed: bool, performed: bool = True, memory: LlmMemory | None = None
    ) -> None:
        """Record the result of a call, unless it has been recorded. A held call was answered when it was held, so its
        result is added as a prompt. `memory`: as the call has changed it; it is saved together with the result."""
        held = tuple(other for other in self.memory.held if other.call.id != call.id)
        was_held = held != self.memory.held
        if not was_held and call.id not in {other.id for other in self.memory.unfinished}:
            return
        tool = None if failed else self.tools.find(call)
        chains = failed or (tool is not None and tool.request_heartbeat)
        message: Message = ResultMessage(call=call.id, name=call.name, text=text, failed=failed, chains=chains)
        memory = memory or self.memory
        if was_held:
            outcome = "failed" if failed else "is done"
            message = PromptMessage(text=f"The call {call.name} that was held back {outcome}: {text}")
            memory = replace(memory, held=held)
        self.worked |= performed and tool is not None and tool.changes
        changed = performed and tool is not None and _changes_files(tool)
        self.bench.memory = memory.finish(call, message, failed=failed and performed, changed=changed)
        self._current = None
        self._save()
        self.bench.output.tool(call.id, call.name, text, over=True, failed=failed)
        if failed:
            self.bench.output.beat("thinking", f"{call.name or 'a call'} failed: {text}")

    def _offer_held(self) -> None:
        """Perform the held calls that the gates now let pass. One stays among them until it has been performed, so that
        an interrupt does not hide it."""
        for held_call in self.memory.held:
            rest = tuple(other for other in self.memory.held if other.call.id != held_call.call.id)
            decision = plugins.decide(self.gates, self._signal(), (held_call.call,), 0)
            if isinstance(decision, ToolCall):
                started = HeldCall(call=replace(decision, id=held_call.call.id), steps=held_call.steps)
                self.bench.memory = replace(self.memory, held=(*rest, started))
                self._perform(started.call)
            elif isinstance(decision, RefusedCall) or held_call.steps <= 1:
                self.bench.memory = replace(self.memory, held=rest)
                self._tell(f"The call {held_call.call.name} that was held back is dropped: {decision.reason}")
            else:
                self.bench.memory = replace(self.memory, held=(*rest, replace(held_call, steps=held_call.steps - 1)))

    def _tell(self, text: str) -> None:
        self.bench.memory = self.memory.add(PromptMessage(text=text))
        self._save()

    def _save(self) -> None:
        """Save the transcript, which only grows, then the snapshot: so every message that is in memory can be
        recalled."""
        self.bench.transcript.follow(self.memory.message_count, self.memory.messages)
        self.bench.snapshots.save()


def _too_many(calls: int) -> str:
    """Return what the model is told about its calls beyond MOST_CALLS; nothing if there are none."""
    rest = calls - MOST_CALLS
    text = f"Heartbeat: only {MOST_CALLS} calls of one answer are performed; your last {rest} were not."
    return text if rest > 0 else ""


def _changes_files(tool: AgentTool) -> bool:
    """Return whether this call may change files of the workspace when it is performed."""
    return tool.changes and tool.name not in LEAVES_FILES
