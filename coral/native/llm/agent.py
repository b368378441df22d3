"""The loop of the brain `llm`: perceive, reason, act, with the gates before each action.

The calls of an answer are performed in order, each once: the start of a call is saved before it and its result after
it. A call with `request_heartbeat` true chains into the next step, one with false yields; a call that fails always
chains, so that the model reads its error. A chain has at most `max_steps` steps; then the outer loop says what follows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from attempts.record import Attempt
from coral.native.llm import plugins
from coral.native.llm.conversation import (
    AnswerMessage,
    HeldCall,
    LlmMemory,
    PromptMessage,
    ResultMessage,
    ToolCall,
)
from coral.native.llm.gates import DeferredCall, Gate, GateSignal, RefusedCall
from coral.native.llm.json_values import as_object
from coral.native.llm.perceive import Perception
from coral.native.llm.request import Reply
from coral.native.llm.toolset import Toolset
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError

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
        for call in self.memory.unfinished:
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
        cut = False
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
                cut = reply.cut
                if reply.refused and not reply.calls:
                    return ChainEnd.REFUSED
            for call in self.memory.unfinished:
                self._pass(call)
            results = self.memory.last_results
            if not cut and not any(result.chains for result in results):
                return ChainEnd.YIELDED
            failed = any(result.failed for result in results)
            self._tell(CUT if cut else CORRECT if failed else CONTINUE)

    def _take(self, reply: Reply) -> None:
        """Add the answer to memory before any of its calls is performed. The calls get ids of ours: servers repeat
        theirs."""
        begin = f"call-{self.memory.message_count + 1}"
        calls = tuple(
            ToolCall(id=f"{begin}-{place}", name=call.name, arguments=call.arguments)
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

    def _pass(self, call: ToolCall) -> None:
        match plugins.decide(self.gates, self._signal(), call):
            case RefusedCall(reason=reason):
                self._finish(call, f"refused: {reason}", failed=True, performed=False)
            case DeferredCall(reason=reason):
                held = (*self.memory.held, HeldCall(call=call, steps=HELD_STEPS))
                self.bench.memory = replace(self.memory, held=held)
                text = f"held back: {reason}; it is done as soon as it may be"
                self._finish(call, text, failed=False, performed=False)
            case ToolCall() as passed:
                self._perform(replace(passed, id=call.id))

    def _perform(self, call: ToolCall) -> None:
        self.bench.memory = replace(self.memory, started=call.id, checked=self._stays_checked(call))
        self._save()
        self._current = call
        try:
            tool = self.tools.read(call)
            self.bench.output.tool(call.id, call.name, call.arguments)
            text = plugins.perform(tool, self.bench)
        except ToolError as problem:
            self._finish(call, str(problem), failed=True)
        else:
            self._finish(call, text, failed=False)

    def _stays_checked(self, call: ToolCall) -> bool:
        """Return whether the workspace counts as checked once this call has begun. One that fails or is cut off may
        have changed files, too."""
        return self.memory.checked and not self._changes_files(call)

    def _changes_files(self, call: ToolCall) -> bool:
        """Return whether this call may change files of the workspace when it is performed."""
        return call.name not in LEAVES_FILES and self.tools.works(call.name)

    def settle(self, text: str, attempt: Attempt, heartbeats: tuple[str, ...]) -> None:
        """Record the result of the submission that is being performed, before its tool returns the same; count the
        attempt, and keep the heartbeats that came with its grade. All is saved at once: after a death in between, the
        attempt would pass for that of a later call, and nobody sends the heartbeats again."""
        memory = self.memory.new_attempt(attempt.number, attempt.commit)
        memory = replace(memory, waiting=(*memory.waiting, *heartbeats))
        if self._current is not None:
            self._finish(self._current, text, failed=False, memory=memory)
        else:  # a held call, which has a result already
            self.bench.memory = memory
            self._save()

    def _finish(
        self, call: ToolCall, text: str, *, failed: bool, performed: bool = True, memory: LlmMemory | None = None
    ) -> None:
        """Record the result of a call; a result that is recorded already stays. `memory`: what the call has made of it,
        which is saved with the result."""
        if call.id in {result.call for result in self.memory.last_results}:
            return
        chains = failed or as_object(call.arguments).get("request_heartbeat") is True
        result = ResultMessage(call=call.id, name=call.name, text=text, failed=failed, chains=chains)
        succeeded = performed and not failed
        self.worked |= succeeded and self.tools.works(call.name)
        changed = succeeded and self._changes_files(call)
        self.bench.memory = (memory or self.memory).finish(call, result, performed=performed, changed=changed)
        self._current = None
        self._save()
        self.bench.output.tool(call.id, call.name, text, over=True, failed=failed)
        if failed:
            self.bench.output.beat("thinking", f"{call.name or 'a call'} failed: {text}")

    def _offer_held(self) -> None:
        """Perform the held calls that the gates now let pass. Their outcome is told in a prompt, for they have results
        already."""
        for held in self.memory.held:
            rest = tuple(other for other in self.memory.held if other.call.id != held.call.id)
            decision = plugins.decide(self.gates, self._signal(), held.call)
            if isinstance(decision, ToolCall):
                self.bench.memory = replace(self.memory, held=rest, checked=self._stays_checked(decision))
                self._save()  # before it is performed: after an interrupt it must not be performed again
                try:
                    text = plugins.perform(self.tools.read(decision), self.bench)
                except ToolError as problem:
                    text = f"it failed: {problem}"
                else:
                    self.worked |= self.tools.works(decision.name)
                    if self._changes_files(decision):
                        self.bench.memory = replace(self.memory, failures=())
                self._tell(f"The call {held.call.name} that was held back is done: {text}")
            elif isinstance(decision, RefusedCall) or held.steps <= 1:
                self.bench.memory = replace(self.memory, held=rest)
                self._tell(f"The call {held.call.name} that was held back is dropped: {decision.reason}")
            else:
                self.bench.memory = replace(self.memory, held=(*rest, replace(held, steps=held.steps - 1)))

    def _tell(self, text: str) -> None:
        self.bench.memory = self.memory.add(PromptMessage(text=text))
        self._save()

    def _save(self) -> None:
        """Save the transcript, which only grows, then the snapshot: so every message that is in memory can be
        recalled."""
        self.bench.transcript.follow(self.memory.message_count, self.memory.messages)
        self.bench.snapshots.save()
