"""The tools of the brain `search`: each performs one kind of call and returns its result as an event, or raises
`ToolError`.

Files, notes, skills and submissions are written here and in `search/explore.py`, and nowhere else.
"""

import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import assert_never

from attempts.record import Verdict
from coral.native.coral_command import CoralCommand, SubmissionResult, submission_result
from coral.native.memory import BLOCK_NAMES, AgentMemory, Candidate, Trial
from coral.native.output import Output
from coral.native.prompt import HeartbeatSection
from coral.native.run_view import AgentRunView
from coral.native.search.bandit import FamilyStats, gain, is_win
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
    Redirect,
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

PROMPT_SECONDS = 5.0  # a `coral wait` that gives up within this time knows that nobody supervises
WAIT_SECONDS = 600.0  # for one `coral wait`; after it the next begins
LONGEST_REASON = 300  # characters
SYNTHESES = {"consolidate", "conclude"}  # heartbeats that ask for a synthesis


@dataclass(slots=True)
class Toolbox:
    snapshots: Snapshots[AgentMemory]
    output: Output
    run_view: AgentRunView
    explorer: Explorer
    inline: list[HeartbeatSection] = field(default_factory=list)  # heartbeats that `coral eval` printed
    running: CoralCommand | None = None

    def catch_up(self) -> None:
        """Read what was published since the last launch, and with it the agent's own result, before the brain is
        asked."""
        self._update_known()
        if self.snapshots.memory.pending is not None:
            self._result_from_records(self.snapshots.memory.pending)

    def observe(self, event: Event) -> Observation:
        """Gather what the brain is shown for this event: only what it can need, because reading everything takes
        time."""
        asked = {section.name for section in event.sections} if isinstance(event, Prompted) else set[str]()
        self._update_known()
        disk = shutil.disk_usage(self.run_view.clone)
        return Observation(
            agent=self.run_view.agent,
            direction=self.run_view.direction,
            families=self.explorer.families() if asked or isinstance(event, Idle) else (),
            has_check=bool(self.explorer.check),
            constraints=self.explorer.constraints() if isinstance(event, Idle) else None,
            skills=tuple(self.run_view.skills()),
            hand_overs=tuple(self.run_view.hand_overs()) if isinstance(event, Idle) else (),
            notes=tuple(self.run_view.notes()) if asked & {*SYNTHESES, "redirect"} else (),
            change_of_best=self.explorer.change_of_best() if asked & SYNTHESES else "",
            findings=self.explorer.findings() if asked & SYNTHESES else (),
            checklist=self.run_view.checklist() if "checkpoint" in asked else "",
            free_disk=disk.free / disk.total,
        )

    def perform(self, call: Call) -> Event:
        """Perform a call. Raises `ToolError` if that is not possible."""
        match call:
            case Say(text=text):
                self.output.text(text)
            case Remember():
                self._remember(call)
            case Redirect(redirection=redirection):
                self.snapshots.memory = replace(self.snapshots.memory, redirection=redirection)
            case WriteNote():
                self._write_note(call)
            case WriteSkill():
                self._write_skill(call)
            case Search():
                return self.explorer.search(call)
            case Submit(candidate=candidate):
                return self._submit(candidate)
            case AwaitResult(trial=trial):
                return self._await_result(trial)
            case _:
                assert_never(call)
        return CallDone()

    def interrupt(self) -> None:
        """End what this process has started, while it is being interrupted."""
        self.explorer.kill()
        if self.running is not None:
            self.running.interrupt()

    def _update_known(self) -> None:
        memory = self.snapshots.memory
        known = self.run_view.update(memory.known)
        memory = memory if known.epoch == memory.known.epoch else memory.for_another_task()
        self.snapshots.memory = replace(memory, known=known)

    def _remember(self, call: Remember) -> None:
        if call.block not in BLOCK_NAMES:
            raise ToolError(f"there is no block {call.block!r} in memory; there are {', '.join(BLOCK_NAMES)}")
        memory = self.snapshots.memory.edit(call.block, call.text, add=call.add)
        self.snapshots.memory = memory.mark_noted(call.about)

    def _write_note(self, call: WriteNote) -> None:
        front: dict[str, Value] = {
            "title": call.title,
            "author": self.run_view.agent,
            "created": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "attempts": list(call.attempts),
            "kind": call.kind,
            **({"claims": call.claims} if call.claims else {}),
            **({"about": list(call.topics)} if call.topics else {}),
        }
        with _writing(f"the note {call.name}"):
            write_note(self.run_view.shared, call.name, front, call.body)
        self.snapshots.memory = self.snapshots.memory.mark_noted(call.about)
        self.output.beat("note", f"wrote the note {call.name}: {call.title}")

    def _write_skill(self, call: WriteSkill) -> None:
        with _writing(f"the skill {call.name}"):
            write_skill(self.run_view.shared, call.name, call.front, call.body)
        self.output.beat("note", f"wrote the skill {call.name}")

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

    def _await_result(self, trial: Trial) -> Event:
        """Return the result of what was submitted before an interrupt; submit it if it never was."""
        if (event := self._result_from_records(trial)) is not None:
            return event
        result = self._last_result(trial)
        return self._run_eval(trial) if result is None else self._take_result(trial, result)

    def _last_result(self, trial: Trial) -> SubmissionResult | None:
        """Return the result of the last submission if that is this trial; None if it is an earlier one, or there is
        none."""
        graded = self.snapshots.memory.graded_numbers
        try:
            result = self._wait_for_grade()
        except ToolError as problem:
            if not problem.transient:
                raise
            return None
        return result if result.title == trial.title and result.number not in graded else None

    def _result_from_records(self, trial: Trial) -> Event | None:
        memory = self.snapshots.memory
        for attempt in reversed(memory.known.recent):
            own = attempt.agent == self.run_view.agent and attempt.title == trial.title
            if own and attempt.number not in memory.graded_numbers:
                return self._finish_trial(trial, attempt.number, attempt.score, attempt.verdict, attempt.reason)
        return None

    def _run_eval(self, trial: Trial) -> Event:
        self.output.beat("submit", trial.title)
        try:
            result = self._run_coral(["eval", "-m", trial.title, "--json"])
        except ToolError:
            # The `coral eval` of a launch that was interrupted may have submitted it in the meantime.
            if (result := self._last_result(trial)) is None:
                self.snapshots.memory = self.snapshots.memory.discard(trial)
                raise
        return self._take_result(trial, result or self._wait_for_grade())

    def _wait_for_grade(self) -> SubmissionResult:
        """Wait for the last submission, as long as somebody grades. A transient ToolError: nothing was submitted."""
        while True:
            began = time.monotonic()
            try:
                result = self._run_coral(["wait", "--json", "--timeout", f"{WAIT_SECONDS:g}"])
            except ToolError as problem:
                raise ToolError(str(problem), transient=True) from problem
            if result is not None:
                return result
            if time.monotonic() - began < PROMPT_SECONDS:
                raise ToolError("what I submitted is not graded, and nobody seems to grade; it stays submitted")

    def _run_coral(self, arguments: list[str]) -> SubmissionResult | None:
        """Run `coral`; take its result as soon as it is printed, then wait as long as the command stays."""
        self.running = command = CoralCommand(self.run_view.clone, arguments, partial(self.output.beat, "wait"))
        data = command.first_object()
        result = submission_result(data, None, "") if data is not None else None
        pending = self.snapshots.memory.pending
        if result is not None and pending is not None and result.title == pending.title:
            # Taken before the command waits for a heartbeat, whose interrupt then finds everything in memory.
            self._take_result(pending, result)
            self.snapshots.save()
        code, errors = command.finish()
        self.running = None
        return result if data is not None else submission_result(None, code, errors)

    def _take_result(self, trial: Trial, result: SubmissionResult) -> Event:
        for known in self.snapshots.memory.trials:
            if known.number == result.number:
                return ResultReceived(known)
        self.inline += result.inline
        return self._finish_trial(trial, result.number, result.score, result.verdict, result.reason)

    def _finish_trial(self, trial: Trial, number: int, score: float | None, verdict: str, reason: str) -> Event:
        trial = replace(trial, number=number, score=score, verdict=verdict, reason=reason[:LONGEST_REASON])
        memory = self.snapshots.memory.add_result(trial)
        self.snapshots.memory = self._count_result(memory, trial) if verdict != Verdict.VOID else memory
        return ResultReceived(trial)

    def _count_result(self, memory: AgentMemory, trial: Trial) -> AgentMemory:
        """Count the try of its family, adapt the family's step, and take one episode off the redirection."""
        gained = gain(trial.before, trial.score, self.run_view.direction)
        gained = gained if is_win(gained, trial.before) else 0.0
        stats = {**memory.stats, trial.family: memory.stats.get(trial.family, FamilyStats()).add(gained)}
        step_sizes = dict(memory.step_sizes)
        if trial.expected is None:
            step_sizes[trial.family] = next_step(step_sizes.get(trial.family, FIRST_STEP), gained > 0)
        redirection = replace(memory.redirection, episodes=max(0, memory.redirection.episodes - 1))
        return replace(memory, stats=stats, step_sizes=step_sizes, redirection=redirection)

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
