"""What the calls of the brain `search` work with: the memory, the clone, the run as the agent sees it."""

import shutil
from dataclasses import dataclass, field, replace
from functools import partial

from attempts.record import Attempt
from coral.native.coral_command import CoralCommand, Inline
from coral.native.memory import LONGEST_REASON, AgentMemory, Trial
from coral.native.output import Output
from coral.native.run_view import AgentRunView
from coral.native.search.explore import Explorer
from coral.native.situation import Event, Idle, Prompted, Situation
from coral.native.snapshots import Snapshots

SYNTHESES = {"consolidate", "conclude"}  # heartbeats that ask for a synthesis


@dataclass(slots=True)
class SearchBench:
    snapshots: Snapshots[AgentMemory]
    output: Output
    run_view: AgentRunView
    explorer: Explorer
    coral: CoralCommand = field(init=False)

    def __post_init__(self) -> None:
        self.coral = CoralCommand(self.run_view.clone, partial(self.output.beat, "wait"), self.take)

    @property
    def memory(self) -> AgentMemory:
        return self.snapshots.memory

    @memory.setter
    def memory(self, memory: AgentMemory) -> None:
        self.snapshots.memory = memory

    def observe(self, event: Event) -> Situation:
        """Read what was published, and with it the agent's own result; gather what the brain is shown for this event:
        only what it can need, because reading everything takes time. It is the first stage of a step."""
        known, view = self.run_view.update(self.memory.known), self.run_view
        memory = self.memory if known.epoch == self.memory.known.epoch else self.memory.without_attempts()
        self.memory = replace(memory, known=known)
        for attempt in known.recent:
            if attempt.agent == view.agent:
                self.take(attempt)
        asked, is_idle = event.section.name if isinstance(event, Prompted) else "", isinstance(event, Idle)
        concludes, disk = asked in SYNTHESES, shutil.disk_usage(view.clone)
        skill, hand_overs = view.skills()
        change, findings = self.explorer.findings() if concludes else ("", ())
        return Situation(
            memory=self.memory,
            agent=view.agent,
            direction=view.direction,
            families=self.explorer.families(),
            constraints=self.explorer.constraints() if is_idle else None,
            skill=skill,
            hand_overs=hand_overs,
            notes=tuple(view.notes()) if concludes or asked == "redirect" else (),
            change_of_best=change,
            findings=findings,
            free_disk=disk.free / disk.total,
        )

    def interrupt(self) -> None:
        """End what this process has started, while it is being interrupted."""
        self.explorer.kill()
        self.coral.interrupt()

    def take(self, attempt: Attempt, inline: Inline = ()) -> None:
        """Save what `coral eval` printed: the result, if it is that of the pending trial, and the heartbeats. This is
        done at once, since `coral eval` has acknowledged the heartbeats, and may wait until it is interrupted."""
        if inline:
            self.memory = self.memory.receive(inline)
            self.snapshots.save()
        pending = self.memory.pending
        if pending is not None and pending.title == attempt.title and attempt.number not in self.memory.graded:
            self.finish(pending, attempt)
            self.snapshots.save()

    def finish(self, trial: Trial, attempt: Attempt) -> None:
        reason, verdict = attempt.reason[:LONGEST_REASON], str(attempt.verdict)
        trial = replace(trial, number=attempt.number, score=attempt.score, verdict=verdict, reason=reason)
        self.memory = self.memory.add_result(trial)
