"""The tools for the agent's own memory, and for saying something."""

from typing import ClassVar

from pydantic import Field

from coral.native.llm.conversation import BLOCKS
from coral.native.llm.tools.base import AgentTool
from coral.native.llm.transcript import excerpt
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError

BLOCK = f"one of {', '.join(BLOCKS)}"


class SendMessage(AgentTool):
    """Say something to whoever watches: the operator, or the person you talk to."""

    name: ClassVar[str] = "send_message"
    message: str = Field(min_length=1)

    def perform(self, bench: Workbench) -> str:
        bench.output.text(self.message)
        return "said"


class CoreMemoryAppend(AgentTool):
    """Add a line to a block of your memory that is always in view."""

    name: ClassVar[str] = "core_memory_append"
    block: str = Field(description=BLOCK)
    content: str = Field(min_length=1)

    def perform(self, bench: Workbench) -> str:
        return _edit(bench, self.block, f"{held(bench, self.block)}\n{self.content}".strip())


class CoreMemoryReplace(AgentTool):
    """Replace a text in a block of your memory that is always in view. An empty new text deletes it."""

    name: ClassVar[str] = "core_memory_replace"
    block: str = Field(description=BLOCK)
    old: str = Field(min_length=1, description="exactly as it stands there")
    new: str

    def perform(self, bench: Workbench) -> str:
        text = held(bench, self.block)
        if text.count(self.old) != 1:
            raise ToolError(f"the old text stands {text.count(self.old)} times in {self.block}; it must stand once")
        return _edit(bench, self.block, text.replace(self.old, self.new).strip())


class Recall(AgentTool):
    """Search everything you ever said and saw in this session, also what is out of view."""

    name: ClassVar[str] = "recall"
    words: str = Field(min_length=1, description="words that all occur in what you look for")
    count: int = Field(5, ge=1, le=20)

    def perform(self, bench: Workbench) -> str:
        words = self.words.split()
        # Without the answer that this very call stands in, and the results of its other calls.
        found = bench.transcript.search(words, self.count, bench.memory.last_answer_number)
        shown = "\n\n".join(f"[{number}] {excerpt(text, words)}" for number, text in found)
        return shown[: bench.longest] or "nothing holds all of these words; try fewer"


def held(bench: Workbench, block: str) -> str:
    if block not in BLOCKS:
        raise ToolError(f"there is no block {block!r}; there are {', '.join(BLOCKS)}")
    return bench.memory.blocks.get(block, "")


def _edit(bench: Workbench, block: str, text: str) -> str:
    most = BLOCKS[block]
    if len(text) > most:
        raise ToolError(
            f"{block} would have {len(text)} of {most} characters; shorten it with core_memory_replace first"
        )
    bench.memory = bench.memory.edit(block, text)
    return f"{block}: {len(text)} of {most} characters"
