"""The first two stages of a step: makes a request of the memory that fits into the window, and asks the model."""

from dataclasses import dataclass, replace

from coral.native.llm import window
from coral.native.llm.client import ModelClient
from coral.native.llm.conversation import BLOCKS, LlmMemory, PromptMessage
from coral.native.llm.patience import Patience
from coral.native.llm.request import Fault, ModelError, ModelRequest, Reply
from coral.native.llm.toolset import Toolset
from coral.native.llm.workbench import Workbench

SYSTEM = """You are an agent in a fleet that improves a score. You act by calling tools, and by nothing else: what you
want somebody to read goes out by send_message. You work in a folder of your own, the workspace: read and change its
files, run the check where there is one, then submit. Only what is submitted is graded, and every attempt counts.

Every tool takes request_heartbeat. With true you get the results at once and make your next step; with false you yield,
and somebody else has the next word. A call that fails always comes back to you: read its error and put it right.
You make at most {max_steps} steps in a row. Calls in one answer are performed in their order.

Your memory has blocks that you always see ({blocks}); edit them with core_memory_append and core_memory_replace. Keep
in plan what you will do next, and in learned what holds and which attempts show it. The conversation is summarised
when it grows too long; recall searches all of it. The notes and skills are the whole fleet's memory.

What the instructions below call `coral eval` is your tool submit; `coral check` is check, and so on.
"""
SUMMARISE = """You keep the memory of an agent that improves a score. Summarise the part of its conversation below for
the agent itself, in at most 400 words: what was tried and what came of it, by the numbers of the attempts and the names
of the files; what was found out, with figures; what is unfinished; what it was asked for and has not done. Leave out
what no longer matters. Write nothing but the summary."""
SUMMARY_TOKENS = 2000
MOST_SHRINKS = 3


@dataclass(slots=True)
class Perception:
    """Asks the model. `instructions`: the text of the instruction file; `scale`: how many tokens the server counts for
    one that we estimate."""

    bench: Workbench
    tools: Toolset
    client: ModelClient
    patience: Patience
    model: str
    instructions: str = ""
    scale: float = 1.0

    def reason(self) -> Reply:
        """Return the model's answer to the memory as it stands. ModelError if there is none.

        A request that is refused as it is may be too long; no two servers say so in the same words. So a shorter one is
        tried, and memory stays as it is unless the server takes that."""
        self._fit()
        memory = self.bench.memory
        for _ in range(MOST_SHRINKS):
            try:
                return self._ask(memory)
            except ModelError as problem:
                if problem.fault is not Fault.REJECTED or len(memory.messages) < 4:
                    raise
                most = _size(memory) // 2
                memory = self._summarised(memory, most)
                memory = window.with_messages(memory, window.squeezed(memory.messages, most))
        return self._ask(memory)

    def request(self, memory: LlmMemory) -> ModelRequest:
        options = self.bench.options
        blocks = ", ".join(BLOCKS)
        system = SYSTEM.format(max_steps=options.max_steps, blocks=blocks)
        limit = options.answer_tokens or (min(16_000, options.window // 5) if options.wire == "messages" else 0)
        return ModelRequest(
            model=self.model,
            system=f"{system}\n{self.instructions}".strip(),
            core=core_text(memory),
            messages=memory.messages,
            tools=self.tools.schemas,
            effort=options.effort,
            temperature=options.temperature,
            answer_tokens=limit,
        )

    def _ask(self, memory: LlmMemory) -> Reply:
        """Return the model's answer to a memory, which from then on is the agent's."""
        request = self.request(memory)
        self.bench.output.beat("thinking", f"asking {request.model or 'the model'}")
        reply = self.patience.ask(self.client, request)
        estimate, counted = window.request_tokens(request), reply.usage.input + reply.usage.cached
        self.scale = max(self.scale, counted / estimate)
        self._keep(memory)
        return reply

    def _keep(self, memory: LlmMemory) -> None:
        if memory.messages is not self.bench.memory.messages:
            self.bench.memory = replace(self.bench.memory, messages=memory.messages, summary=memory.summary)
            self.bench.snapshots.save()

    def _fit(self) -> None:
        """Summarise the oldest messages if the next request would come near to the end of the window."""
        whole = self.bench.options.window / self.scale
        memory = self.bench.memory
        tokens = window.request_tokens(self.request(memory))
        if tokens > window.FULL * whole:
            frame = tokens - _size(memory)
            memory = self._summarised(memory, int(max(0, window.KEPT * whole - frame)))
            frame = window.request_tokens(self.request(memory)) - _size(memory)
            most = int(max(0, window.FULL * whole - frame))
            self._keep(window.with_messages(memory, window.squeezed(memory.messages, most)))

    def _summarised(self, memory: LlmMemory, most: int) -> LlmMemory:
        """Return the memory with a summary in place of its oldest messages, so that the others have at most `most`
        tokens."""
        place = window.cut(memory.messages, most)
        old = memory.messages[:place]
        if not old or old == (window.SUMMARISED,):
            return memory
        self.bench.output.compacted(f"{len(old)} messages become a summary")
        text = window.as_text(old, int(self.bench.options.window / self.scale / 3))
        summary = window.clip(self._summary(memory.summary, text), self.bench.options.window // 8)
        if named := window.mentions((PromptMessage(text=memory.summary), *old)):
            summary += f"\nIt speaks of {named}."
        return window.replaced(memory, place, summary)

    def _summary(self, before: str, text: str) -> str:
        """Return a summary by the model; if that cannot be asked, the old summary with the clipped text of the
        messages."""
        request = ModelRequest(
            model=self.bench.options.summary_model or self.model,
            system=SUMMARISE,
            messages=(PromptMessage(text=f"Summary so far:\n{before or 'none'}\n\nWhat came after it:\n{text}"),),
            answer_tokens=SUMMARY_TOKENS,
        )
        try:
            reply = self.patience.ask(self.client, request)
        except ModelError as problem:
            self.bench.output.error(f"no summary came from the model: {problem}")
            return f"{before}\n{window.clip(text, 3000)}".strip()
        return reply.text.strip() or f"{before}\n{window.clip(text, 3000)}".strip()


def core_text(memory: LlmMemory) -> str:
    """Return the blocks, with their sizes, and the summary of what is out of view."""
    parts = [
        f"<{name} {len(memory.blocks.get(name, ''))}/{most} characters>\n{memory.blocks.get(name, '')}\n</{name}>"
        for name, most in BLOCKS.items()
    ]
    if memory.summary:
        parts.append(f"<summary of what is out of view; recall finds the rest>\n{memory.summary}\n</summary>")
    return "\n".join(parts)


def _size(memory: LlmMemory) -> int:
    return sum(map(window.message_tokens, memory.messages))
