"""The calls that a brain makes. Each is a tool: its fields say what to do, `perform` does it.

Files, notes, skills and submissions are written here and in `search/explore.py`, and nowhere else.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coral.native.memory import BLOCK_NAMES, Candidate, Redirection
from coral.native.situation import Call, Event, ResultReceived
from coral.native.tool_error import ToolError
from workspace.errors import WorkspaceError
from workspace.frontmatter import Value
from workspace.knowledge import write_note, write_skill

if TYPE_CHECKING:
    from coral.native.workbench import SearchBench


@dataclass(frozen=True, slots=True, kw_only=True)
class Say(Call):
    text: str

    def perform(self, bench: SearchBench) -> None:
        bench.output.text(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remember(Call):
    """Replace a block of memory, or add a line to it. What is decided and which own attempts were looked at, up to
    which number, is kept beside it."""

    block: str
    text: str
    add: bool = False
    redirection: Redirection | None = None
    reflected: int | None = None

    def perform(self, bench: SearchBench) -> None:
        if self.block not in BLOCK_NAMES:
            raise ToolError(f"there is no block {self.block!r} in memory; there are {', '.join(BLOCK_NAMES)}")
        memory = bench.memory.edit(self.block, self.text, add=self.add)
        redirection = memory.redirection if self.redirection is None else self.redirection
        reflected = memory.reflected if self.reflected is None else self.reflected
        bench.memory = replace(memory, redirection=redirection, reflected=reflected)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteNote(Call):
    """Leave a note in the shared knowledge."""

    name: str
    title: str
    kind: str = "note"
    attempts: tuple[int, ...]
    body: str
    topics: tuple[str, ...] = ()  # what the note is about: families of moves, starts
    claims: str = ""  # what the agent will try, so that no other does

    def perform(self, bench: SearchBench) -> None:
        front: dict[str, Value] = {"title": self.title, "author": bench.run_view.agent}
        front |= {"attempts": list(self.attempts), "kind": self.kind}
        front |= {"about": list(self.topics)} if self.topics else {}
        front |= {"claims": self.claims} if self.claims else {}
        with _writing(f"the note {self.name}"):
            write_note(bench.run_view.shared, self.name, front, self.body)
        bench.output.beat("note", f"wrote the note {self.name}: {self.title}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSkill(Call):
    name: str
    front: Mapping[str, Value]
    body: str

    def perform(self, bench: SearchBench) -> None:
        with _writing(f"the skill {self.name}"):
            write_skill(bench.run_view.shared, self.name, self.front, self.body)
        bench.output.beat("note", f"wrote the skill {self.name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search(Call):
    """Search for a few seconds with a family of moves, from an attempt (None: from the files as they are)."""

    family: str
    start: int | None
    why: str
    request_heartbeat: bool = True

    def perform(self, bench: SearchBench) -> Event:
        return bench.explorer.search(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Submit(Call):
    """Write the candidate's files, submit them, and wait for the result. The trial is pending from the moment its files
    are written: after an interrupt before that the call is repeated; after a later one its result is waited for."""

    candidate: Candidate
    request_heartbeat: bool = True

    def perform(self, bench: SearchBench) -> Event:
        trial = self.candidate.trial
        if bench.memory.pending == trial:
            try:
                bench.coral.wait()
            except ToolError as problem:
                if not problem.transient:  # else it was cut off before it was submitted
                    raise
        else:
            self._write(bench)
        if bench.memory.pending is not None:
            bench.output.beat("submit", trial.title)
            try:
                attempt = bench.coral.submit(trial.title)
            except ToolError:
                bench.memory = bench.memory.discard(trial)
                raise
            attempt = attempt or bench.coral.wait()
            if bench.memory.pending is not None:  # as where its title was shortened
                bench.finish(trial, attempt)
        return ResultReceived(bench.memory.trials[-1])

    def _write(self, bench: SearchBench) -> None:
        """Write the files, each whole or not at all, with the mode that it had."""
        try:
            with _writing("the candidate"):
                for name, text in self.candidate.texts.items():
                    path = bench.run_view.clone / name
                    temporary = path.with_name(f".coral-{path.name}")
                    temporary.write_bytes(text.encode())
                    if path.exists():
                        shutil.copymode(path, temporary)
                    temporary.replace(path)
        except ToolError:
            bench.memory = replace(bench.memory, unsubmitted=None)  # or it is tried for ever
            raise
        bench.memory = replace(bench.memory, unsubmitted=None, pending=self.candidate.trial)
        bench.snapshots.save()


@contextmanager
def _writing(what: str) -> Iterator[None]:
    """Turn errors of writing in this context into a ToolError."""
    try:
        yield
    except (OSError, WorkspaceError) as problem:
        raise ToolError(f"cannot write {what}: {problem}") from problem
