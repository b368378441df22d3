"""The tools: each performs one kind of call and says what came of it as an event, or raises `ToolError`.

This is the only module of the agent's upper half that changes anything outside: files, notes, submissions.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import assert_never

from attempts.record import Verdict
from coral.native.calls import Await, Call, Remember, Say, Search, Steering, Submit, WriteNote, WriteSkill
from coral.native.format import gain, is_worth
from coral.native.hand_in import Command, Result, result_of
from coral.native.memory import BLOCK_NAMES, Memory, Trial
from coral.native.output import Output
from coral.native.prompt import Section
from coral.native.run_view import Surroundings
from coral.native.search import unchecked_search as blind
from coral.native.search.bandit import Credit
from coral.native.search.explore import Explorer
from coral.native.situation import Event, Graded, Idle, Prompted, World, Written
from coral.native.snapshots import Keeper
from coral.native.tool_error import MemoryFault, ToolError
from workspace.errors import WorkspaceError
from workspace.frontmatter import Value

SOON = 5.0  # seconds; a wait that gives up earlier knows that nobody supervises
STAY = 600.0  # seconds that an earlier submission is waited for at a time


@dataclass(slots=True)
class Toolbox:
    keeper: Keeper
    output: Output
    surroundings: Surroundings
    explorer: Explorer
    inline: list[Section] = field(default_factory=list)  # heartbeats that `coral eval` printed
    running: Command | None = None

    def catch_up(self) -> None:
        """Take in what was published while this agent was away: its own result, before anything is asked about it.

        Raises `MemoryFault` where memory speaks of attempts that are not there.
        """
        if problem := self.surroundings.contradiction(self.keeper.memory.board):
            raise MemoryFault(problem)
        self.keeper.memory = replace(self.keeper.memory, board=self.surroundings.update(self.keeper.memory.board))
        if self.keeper.memory.pending is not None:
            self._published(self.keeper.memory.pending)

    def gather(self, event: Event) -> World:
        """What the brain is shown for this event: only what it can need, because reading everything takes time."""
        asked = {section.name for section in event.sections} if isinstance(event, Prompted) else set[str]()
        around = self.surroundings
        self.keeper.memory = replace(self.keeper.memory, board=around.update(self.keeper.memory.board))
        usage = shutil.disk_usage(around.clone)
        lessons = tuple(around.lessons())
        return World(
            agent=around.agent,
            direction=around.direction,
            families=self.explorer.families() if asked or isinstance(event, Idle) else (),
            checked=bool(self.explorer.check),
            lessons=lessons,
            notes=tuple(around.notes()) if "consolidate" in asked else (),
            checklist=around.checklist() if "checkpoint" in asked else "",
            room=usage.free / usage.total,
        )

    def perform(self, call: Call) -> Event:
        """Do what is asked. Raises `ToolError` when that is not possible."""
        match call:
            case Say(text=text):
                self.output.text(text)
                return Written("said")
            case Remember():
                return self._remember(call)
            case Steering(steer=steer):
                self.keeper.memory = replace(self.keeper.memory, steer=steer)
                return Written("the course")
            case WriteNote():
                return self._note(call)
            case WriteSkill():
                return self._skill(call)
            case Search():
                return self.explorer.search(call)
            case Submit():
                return self._submit(call)
            case Await(trial=trial):
                return self._await(trial)
            case _:
                assert_never(call)

    def interrupt(self) -> None:
        """For the moment of our own end: take along what we have started."""
        self.explorer.kill()
        if self.running is not None:
            self.running.interrupt()

    def _remember(self, call: Remember) -> Event:
        if call.block not in BLOCK_NAMES:
            raise ToolError(f"there is no block {call.block!r} in memory; there are {', '.join(BLOCK_NAMES)}")
        self.keeper.memory = self.keeper.memory.edit(call.block, call.text, add=call.add)
        return Written(f"block {call.block}")

    def _note(self, call: WriteNote) -> Event:
        from workspace.knowledge import write_note

        front: dict[str, Value] = {
            "title": call.title,
            "author": self.surroundings.agent,
            "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "attempts": list(call.attempts),
            "kind": call.kind,
        }
        try:
            write_note(self.surroundings.shared, call.name, front, call.body)
        except (OSError, WorkspaceError) as problem:
            raise ToolError(f"cannot write the note {call.name}: {problem}") from problem
        self.keeper.memory = self.keeper.memory.noted(call.about)
        self.output.beat("note", f"wrote the note {call.name}: {call.title}")
        return Written(call.name)

    def _skill(self, call: WriteSkill) -> Event:
        from workspace.knowledge import write_skill

        try:
            write_skill(self.surroundings.shared, call.name, call.front, call.body)
        except (OSError, WorkspaceError) as problem:
            raise ToolError(f"cannot write the skill {call.name}: {problem}") from problem
        self.output.beat("note", f"wrote the skill {call.name}")
        return Written(call.name)

    def _submit(self, call: Submit) -> Event:
        """Write the candidate's files and hand them in. From here on the trial is pending, whatever interrupts."""
        self.keeper.memory = replace(self.keeper.memory, work=None, pending=call.trial)
        self._write(call.texts)
        self.keeper.save()
        return self._hand_in(call.trial)

    def _await(self, trial: Trial) -> Event:
        """The result of what was handed in before an interrupt; handed in again if it never was."""
        if (event := self._published(trial)) is not None:
            return event
        seen = {known.number for known in self.keeper.memory.trials}
        try:
            result = self._stay()
        except ToolError as problem:
            if not problem.again:
                raise
            return self._hand_in(trial)  # nothing was ever handed in
        if result.title == trial.title and result.number not in seen:
            return self._taken_in(trial, result)
        return self._hand_in(trial)  # the last that was handed in is an earlier one

    def _published(self, trial: Trial) -> Event | None:
        """What the records say of a trial that is pending."""
        seen = {known.number for known in self.keeper.memory.trials}
        for entry in reversed(self.keeper.memory.board.recent):
            if entry.agent == self.surroundings.agent and entry.title == trial.title and entry.number not in seen:
                return self._settle(trial, entry.number, entry.score, entry.verdict, entry.reason)
        return None

    def _hand_in(self, trial: Trial) -> Event:
        self.output.beat("submit", trial.title)
        try:
            result = self._run(["eval", "-m", trial.title, "--json"])
        except ToolError:
            self.keeper.memory = self.keeper.memory.give_up(trial)
            raise
        return self._taken_in(trial, result or self._stay())

    def _stay(self) -> Result:
        """Wait for what was handed in last, as long as somebody grades. `again`: nothing was handed in."""
        while True:
            began = time.monotonic()
            try:
                result = self._run(["wait", "--json", "--timeout", f"{STAY:g}"])
            except ToolError as problem:
                raise ToolError(str(problem), again=True) from problem
            if result is not None:
                return result
            if time.monotonic() - began < SOON:
                raise ToolError("what I handed in is not graded, and nobody seems to grade; it stays handed in")

    def _run(self, arguments: list[str]) -> Result | None:
        """Run `coral`; take in the result as soon as it is there, then stay as long as the command does."""
        self.running = command = Command(self.surroundings.clone, arguments, self._pulse)
        data = command.object()
        result = result_of(data, None, "") if data is not None else None
        if result is not None and self.keeper.memory.pending is not None:
            self._remember_result(self.keeper.memory.pending, result)
        code, errors = command.finish()
        self.running = None
        return result if data is not None else result_of(None, code, errors)

    def _remember_result(self, trial: Trial, result: Result) -> None:
        """Before the command stays for a heartbeat: the interrupt finds everything in memory."""
        if result.title == trial.title:
            self._taken_in(trial, result)
            self.keeper.save()

    def _taken_in(self, trial: Trial, result: Result) -> Event:
        if any(known.number == result.number for known in self.keeper.memory.trials):
            settled = next(known for known in self.keeper.memory.trials if known.number == result.number)
            return Graded(settled)
        self.inline += result.inline
        return self._settle(trial, result.number, result.score, result.verdict, result.reason)

    def _settle(self, trial: Trial, number: int, score: float | None, verdict: str, reason: str) -> Event:
        trial = replace(trial, number=number, score=score, verdict=verdict, reason=reason[:300])
        memory = self.keeper.memory.settle(trial)
        self.keeper.memory = self._credited(memory, trial) if verdict != Verdict.VOID else memory
        return Graded(trial)

    def _credited(self, memory: Memory, trial: Trial) -> Memory:
        """What the family earned, what its step becomes, and one episode less of the course that was set."""
        gained = gain(trial.before, trial.score, self.surroundings.direction)
        gained = gained if is_worth(gained, trial.before) else 0.0
        credit = {**memory.credit, trial.family: memory.credit.get(trial.family, Credit()).after(gained)}
        steps = dict(memory.steps)
        if trial.expected is None:
            steps[trial.family] = blind.next_size(steps.get(trial.family, blind.FIRST), gained > 0)
        steer = replace(memory.steer, episodes=max(0, memory.steer.episodes - 1))
        return replace(memory, credit=credit, steps=steps, steer=steer)

    def _write(self, texts: Mapping[str, str]) -> None:
        """Each file whole or not at all, with the mode it had."""
        for name, text in texts.items():
            path = self.surroundings.clone / name
            temporary = path.with_name(f".coral-{path.name}")
            try:
                temporary.write_bytes(text.encode())
                if path.exists():
                    shutil.copymode(path, temporary)
                temporary.replace(path)
            except OSError as problem:
                raise ToolError(f"cannot write the candidate: {problem}") from problem

    def _pulse(self, message: str) -> None:
        self.output.beat("wait", message)
