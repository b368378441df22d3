"""The tools for what the fleet knows: notes with evidence, and skills."""

from datetime import UTC, datetime
from typing import ClassVar, Literal

from pydantic import Field

from coral.native.llm.tools.base import AgentTool
from coral.native.llm.tools.commands import coral
from coral.native.llm.workbench import Workbench
from coral.native.shared_skills import HandOver
from coral.native.tool_error import ToolError
from workspace.errors import WorkspaceError
from workspace.frontmatter import Value
from workspace.knowledge import write_note, write_skill


class Notes(AgentTool):
    """The fleet's notes. search finds those that hold every word; read shows one; write leaves one of yours, with the
    attempts that are its evidence."""

    name: ClassVar[str] = "notes"
    action: Literal["search", "read", "write"]
    words: str = Field("", description="search: words; empty: all notes")
    note: str = Field("", description="read: its number or name")
    title: str = Field("", description="write: one sentence that says what was found")
    body: str = Field("", description="write: Markdown")
    kind: Literal["note", "dead-end", "synthesis"] = Field("note", description="write")
    attempts: list[int] = Field(default_factory=list, description="write: numbers of the attempts that show it")

    @property
    def changes(self) -> bool:
        return self.action == "write"

    def perform(self, bench: Workbench) -> str:
        if self.action == "search":
            return coral(bench, "notes", *(("--search", self.words) if self.words else ("--all",)))
        if self.action == "read":
            if not self.note:
                raise ToolError("read needs note, a number or a name; search lists them")
            return coral(bench, "notes", "--read", self.note)
        if not self.title or not self.body:
            raise ToolError("write needs title and body, and attempts as evidence")
        return self._write(bench)

    def _write(self, bench: Workbench) -> str:
        moment = datetime.now(UTC)
        front: dict[str, Value] = {
            "title": self.title,
            "author": bench.agent,
            "created": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "attempts": self.attempts,
            "kind": self.kind,
        }
        name = f"{bench.agent}-{moment:%Y%m%d-%H%M%S}-{_slug(self.title)}"
        try:
            write_note(bench.clone / ".shared", name, front, self.body)
        except (OSError, WorkspaceError) as problem:
            raise ToolError(f"cannot write the note: {problem}") from None
        return f"written: {name}"


class Skills(AgentTool):
    """The fleet's skills: what was distilled for reuse. list, read, or write one."""

    name: ClassVar[str] = "skills"
    action: Literal["list", "read", "write"]
    skill: str = Field("", description="read, write: its name, such as line-search")
    description: str = Field("", description="write: when to use it, in one sentence")
    body: str = Field("", description="write: Markdown")

    @property
    def changes(self) -> bool:
        return self.action == "write"

    def perform(self, bench: Workbench) -> str:
        if self.action == "list":
            return coral(bench, "skills")
        if not self.skill:
            raise ToolError(f"{self.action} needs skill, a name")
        if self.action == "read":
            return coral(bench, "skills", "--read", self.skill)
        if not self.description or not self.body:
            raise ToolError("write needs description and body")
        front: dict[str, Value] = {"name": self.skill, "description": self.description, "author": bench.agent}
        try:
            write_skill(bench.clone / ".shared", self.skill, front, self.body)
        except (OSError, WorkspaceError) as problem:
            raise ToolError(f"cannot write the skill: {problem}") from None
        return f"written: {self.skill}"


class HandOverTool(AgentTool):
    """Hand an attempt of yours to the agents of the fleet that search numbers without a model, where there are such:
    they vary the numbers of its editable files, and a note gives it back (notes: tuned). A comment on a number's line
    tells them more: # range: 0..1, # choices: adam, sgd, # fixed."""

    name: ClassVar[str] = "hand_over"
    works: ClassVar[bool] = True
    attempt: int = Field(ge=0, description="its number; its score need not be the best: they begin from it")
    why: str = Field(min_length=1, max_length=300, description="which numbers matter, in one sentence")

    def perform(self, bench: Workbench) -> str:
        if str(self.attempt) not in bench.memory.attempts:
            own = ", ".join(f"#{number}" for number in bench.memory.attempts) or "none yet"
            raise ToolError(f"#{self.attempt} is no attempt of yours; those are: {own}")
        front, body = HandOver(bench.agent, self.attempt).front(self.why), self.why
        try:
            write_skill(bench.clone / ".shared", f"tune-{_slug(bench.agent)}", front, body)
        except (OSError, WorkspaceError) as problem:
            raise ToolError(f"cannot hand it over: {problem}") from None
        return f"#{self.attempt} is handed over; look for a note that says it is tuned"


def _slug(title: str) -> str:
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in title.lower()).split()
    return "-".join(words)[:40].strip("-") or "note"
