"""The tools of the brain `search`: each performs one kind of call and returns its result as an event, or raises
`ToolError`.

Files, notes, skills and submissions are written here and in `search/explore.py`, and nowhere else.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from attempts.record import Attempt, Verdict
from coral.native.coral_command import CoralCommand
from coral.native.memory import BLOCK_NAMES, AgentMemory, Candidate, KnownAttempt, Trial
from coral.native.output import Output
from coral.native.prompt import HeartbeatSection
from coral.native.run_view import AgentRunView
from coral.native.search.bandit import gain, is_win
from coral.native.search.explore import Explorer
from coral.native.search.unchecked_search import FIRST_STEP, next_step
from coral.native.situation import (
    AwaitResult,
    Call,
    CallDone,
    Event,
    Idle,
    Observation,
    Prompted,
    Remember,
    ResultReceived,
    Say,
    Search,
    Submit,
    WriteNote,
    WriteSkill,
)
from coral.native.snapshots import Snapshots
from coral.native.tool_error import ToolError
from workspace.errors import WorkspaceError
from workspace.frontmatter import Value
from workspace.knowledge import write_note, write_skill

LONGEST_REASON = 300  # characters
SYNTHESES = {"consolidate", "conclude"}  # heartbeats that ask for a synthesis


@dataclass(slots=True)
class Toolbox:
    snapshots: Snapshots[AgentMemory]
    output: Output
    run_view: AgentRunView
    explorer: Explorer
    inline: list[HeartbeatSection] = field(default_factory=list)  # heartbeats that `coral eval` printed
    coral: CoralCommand = field(init=False)

    def __post_init__(self) -> None:
        self.coral = CoralCommand(self.run_view.clone, partial(self.output.beat, "wait"), self._take)

    def catch_up(self) -> None:
        """Read what was published since the last launch, and with it the agent's own result, before the brain is
        asked."""
        memory = self.snapshots.memory
        known = self.run_view.update(memory.known)
        memory = memory if known.epoch == memory.known.epoch else memory.for_another_task()
        self.snapshots.memory = replace(memory, known=known)
        for attempt in known.recent:
            if attempt.agent == self.run_view.agent:
                self._take(attempt)

    def observe(self, event: Event) -> Observation:
        """Gather what the brain is shown for this event: only what it can need, because reading everything takes
        time."""
        self.catch_up()
        asked, is_idle = event.section.name if isinstance(event, Prompted) else "", isinstance(event, Idle)
        concludes, view, disk = asked in SYNTHESES, self.run_view, shutil.disk_usage(self.run_view.clone)
        skill, hand_overs = view.skills()
        return Observation(
            agent=view.agent,
            direction=view.direction,
            families=self.explorer.families() if asked or is_idle else (),
            has_check=bool(self.explorer.check),
            constraints=self.explorer.constraints() if is_idle else None,
            skill=skill,
            hand_overs=hand_overs,
            notes=tuple(view.notes()) if concludes or asked == "redirect" else (),
            change_of_best=self.explorer.change_of_best() if concludes else "",
            findings=self.explorer.findings() if concludes else (),
            checklist=view.checklist() if asked == "checkpoint" else "",
            free_disk=disk.free / disk.total,
        )

    def perform(self, call: Call) -> Event:
        """Perform a call. Raises `ToolError` if that is not possible."""
        match call:
            case Say(text=text):
                self.output.text(text)
            case Remember():
                self._remember(call)
            case WriteNote():
                self._write_note(call)
            case WriteSkill(name=name):
                with _writing(f"the skill {name}"):
                    write_skill(self.run_view.shared, name, call.front, call.body)
                self.output.beat("note", f"wrote the skill {name}")
            case Search():
                return self.explorer.search(call)
            case Submit(candidate=candidate):
                return self._submit(candidate)
            case AwaitResult(trial=trial):
                return self._await_result(trial)
            case _:
                raise ToolError(f"there is no tool for {type(call).__name__}")
        return CallDone()

    def interrupt(self) -> None:
        """End what this process has started, while it is being interrupted."""
        self.explorer.kill()
        self.coral.interrupt()

    def _remember(self, call: Remember) -> None:
        if call.block not in BLOCK_NAMES:
            raise ToolError(f"there is no block {call.block!r} in memory; there are {', '.join(BLOCK_NAMES)}")
        memory = self.snapshots.memory.edit(call.block, call.text, add=call.add)
        redirection = memory.redirection if call.redirection is None else call.redirection
        reflected = memory.reflected if call.reflected is None else call.reflected
        self.snapshots.memory = replace(memory, redirection=redirection, reflected=reflected)

    def _write_note(self, call: WriteNote) -> None:
        front: dict[str, Value] = {
            "title": call.title,
            "author": self.run_view.agent,
            "attempts": list(call.attempts),
            "kind": call.kind,
            **({"claims": call.claims} if call.claims else {}),
            **({"about": list(call.topics)} if call.topics else {}),
        }
        with _writing(f"the note {call.name}"):
            write_note(self.run_view.shared, call.name, front, call.body)
        self.output.beat("note", f"wrote the note {call.name}: {call.title}")

    def _submit(self, candidate: Candidate) -> Event:
        """Write the candidate's files, then submit them. The trial is pending from the moment its files are written:
        after an interrupt before that the step is repeated, after a later one the result is waited for."""
        try:
            self._write_files(candidate.texts)
        except ToolError:
            self.snapshots.memory = replace(self.snapshots.memory, unsubmitted=None)  # or it is tried for ever
            raise
        self.snapshots.memory = replace(self.snapshots.memory, unsubmitted=None, pending=candidate.trial)
        self.snapshots.save()
        return self._run_eval(candidate.trial)

    def _run_eval(self, trial: Trial) -> Event:
        self.output.beat("submit", trial.title)
        try:
            attempt = self.coral.submit(trial.title)
        except ToolError:
            self.snapshots.memory = self.snapshots.memory.discard(trial)
            raise
        if self.snapshots.memory.pending is not None:  # as where its title was shortened
            self._finish_trial(trial, attempt)
        return ResultReceived(self.snapshots.memory.trials[-1])

    def _await_result(self, trial: Trial) -> Event:
        """Return the result of what was submitted before an interrupt; submit it if it never was."""
        try:
            self.coral.wait()
        except ToolError as problem:
            if not problem.transient:
                raise
        if self.snapshots.memory.pending is not None:  # what it has waited for is an earlier one
            return self._run_eval(trial)
        return ResultReceived(self.snapshots.memory.trials[-1])

    def _take(self, attempt: Attempt | KnownAttempt, inline: tuple[HeartbeatSection, ...] = ()) -> None:
        """Take a result into memory if it is that of the pending trial: before a command that stays for a heartbeat is
        interrupted by it."""
        self.inline += inline
        memory = self.snapshots.memory
        if memory.pending and memory.pending.title == attempt.title and attempt.number not in memory.graded:
            self._finish_trial(memory.pending, attempt)
            self.snapshots.save()

    def _finish_trial(self, trial: Trial, attempt: Attempt | KnownAttempt) -> None:
        trial = replace(
            trial,
            number=attempt.number,
            score=attempt.score,
            verdict=str(attempt.verdict),
            reason=attempt.reason[:LONGEST_REASON],
        )
        memory = self.snapshots.memory.add_result(trial)
        if trial.verdict != Verdict.VOID and trial.expected is None:
            won = is_win(gain(trial.before, trial.score, self.run_view.direction), trial.before)
            step = next_step(memory.step_sizes.get(trial.family, FIRST_STEP), won)
            memory = replace(memory, step_sizes={**memory.step_sizes, trial.family: step})
        self.snapshots.memory = memory

    def _write_files(self, texts: Mapping[str, str]) -> None:
        """Write the files, each whole or not at all, with the mode that it had."""
        with _writing("the candidate"):
            for name, text in texts.items():
                path = self.run_view.clone / name
                temporary = path.with_name(f".coral-{path.name}")
                temporary.write_bytes(text.encode())
                if path.exists():
                    shutil.copymode(path, temporary)
                temporary.replace(path)


@contextmanager
def _writing(what: str) -> Iterator[None]:
    """Turn errors of writing in this context into a ToolError."""
    try:
        yield
    except (OSError, WorkspaceError) as problem:
        raise ToolError(f"cannot write {what}: {problem}") from problem
