"""What happened since the last turn, as events: post, exits, output, and what the threads have finished.

Nothing is decided here. An item that cannot be read becomes `Broken`, and the rest goes on.
"""

import time
from collections.abc import Iterator, Mapping

from attempts.fields import one_line
from coral.fleet import events as on
from coral.fleet.agent_state import LIVE, Agent, Phase
from coral.fleet.jobs import LAUNCH
from coral.fleet.policy import MAX_KILLS, intake_capacity
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.run_state import OCCUPYING, Fleet
from coral.grading import checkout
from coral.processes.launches import Launch, Launches, State
from coral.processes.process_table import Identity
from coral.supervisor import job_files
from coral.supervisor.context import RunContext
from coral.supervisor.disk import DiskCheck
from coral.supervisor.folder_watch import FolderWatch
from coral.supervisor.inbox import Inbox
from coral.supervisor.perform import Performer
from coral.views.report import Report
from heartbeats.beat import Status

LISTEN_SECONDS = 0.5  # how often output is read that nobody waits for
EXPECT_SECONDS = 0.05  # how often it is read while a new launch has yet to say its first word
EXPECTED_FOR = 30.0  # how long a launch is new
SCRUB_SECONDS = 5.0  # how often the records are looked at, however rarely the inboxes are
MORE_SECONDS = 0.2  # how soon to look again at an inbox that holds more than is read at a time
MAX_PIECES = 64  # what is read at most of the output that a launch left at its end
ENDED = {on.Ending.CLEAN: Status.SUCCESS, on.Ending.INTERRUPTED: Status.CANCELLED}

Identities = Mapping[str, tuple[int, Identity]]


class Gatherer:
    def __init__(
        self,
        run_context: RunContext,
        launches: Launches,
        inbox: Inbox,
        performer: Performer,
        report: Report,
        watch: FolderWatch | None,
    ) -> None:
        self._layout = run_context.layout
        self._roster = run_context.roster
        self._launches = launches
        self._inbox = inbox
        self._performer = performer
        self._report = report
        self._watch = watch
        self._poll_seconds = run_context.config.run.poll_seconds
        self._rules = run_context.rules
        self._space = DiskCheck(run_context.layout.root)
        self._polled_at = float("-inf")
        self._scrub_seconds = min(self._poll_seconds, SCRUB_SECONDS)
        self._scrubbed_at = float("-inf")
        self._collected_at = float("-inf")
        self._full: set[str] = set()
        self._listened_at = float("-inf")
        self._looked_at = float("-inf")
        self._trouble = ""
        self._broken: set[str] = set()

    def gather(self, fleet: Fleet, now: on.Moment) -> list[on.Event]:
        """Everything that happened, in an order that a person would tell it in."""
        lacking, self._performer.lacking = self._performer.lacking, ""
        disk_problem = self._space.look(now.run_time, lacking)
        # What fails for want of space comes after it is said, and before it is said that it is over.
        events: list[on.Event] = [on.DiskChecked(problem=disk_problem)] if disk_problem else []
        touched = self._watch.take() if self._watch is not None else frozenset()
        polls = now.run_time - self._polled_at >= self._poll_seconds
        if polls:
            self._polled_at = now.run_time
            self._keep_watching(now)
            self._launches.suspect_all()
            self._performer.write_again(fleet, now)
        if now.run_time - self._scrubbed_at >= self._scrub_seconds:
            self._scrubbed_at = now.run_time
            events += self._guarded("the look at the records", self._performer.scrub(fleet, now))
        self._performer.collect(fleet)
        events += self._take_happened()
        free = intake_capacity(fleet.agents, fleet.pending.values(), self._rules)
        before, self._full = self._full, {agent for agent, left in free.items() if not left}
        everywhere = polls or self._inbox.more or bool(before - self._full)
        if self._post_is_due(everywhere or bool(touched), now):
            self._collected_at = now.run_time
            found = self._inbox.collect(now.run_time, free, None if everywhere else touched)
            events += self._guarded("the inboxes", found)
        events += self._listen(fleet, now)
        events += self._guarded("the launches that are over", self._ends(fleet, now))
        return [*events, on.DiskChecked(problem="")] if disk_problem == "" else events

    def _post_is_due(self, wanted: bool, now: on.Moment) -> bool:
        """While somebody floods us there is always more: then at a pace, whatever comes."""
        if self._inbox.more:
            return now.run_time - self._collected_at >= MORE_SECONDS
        return wanted

    def _guarded(self, item: str, events: Iterator[on.Event]) -> Iterator[on.Event]:
        """The quarantine of a whole sense: it ends early, is told once, and is tried again at the next turn."""
        try:
            yield from events
            self._broken.discard(item)
        except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
            if item not in self._broken:
                self._broken.add(item)
                yield _broken(item, error)

    def next_look(self, fleet: Fleet, now: on.Moment) -> float:
        """Seconds until there is a reason of ours to look again."""
        if self._performer.happened:
            return 0.0
        listening = EXPECT_SECONDS if any(_is_new(each, now) for each in fleet.agents.values()) else LISTEN_SECONDS
        looks = [self._polled_at + self._poll_seconds - now.run_time]
        looks.append(self._scrubbed_at + self._scrub_seconds - now.run_time)
        if self._space.next_look is not None:
            looks.append(self._space.next_look - now.run_time)
        if self._inbox.more:
            looks.append(self._collected_at + MORE_SECONDS - now.run_time)
        if any(each.phase in LIVE for each in fleet.agents.values()):
            looks.append(self._looked_at + listening - now.run_time)
        if self._launches.next_look is not None:
            looks.append(self._launches.next_look)
        return max(min(looks), 0.0)

    def reconcile(self, fleet: Fleet, identities: Identities, now: on.Moment) -> list[on.Event]:
        """A new supervisor: take over what still runs, and say of the rest that nobody saw it end."""
        events: list[on.Event] = []
        for agent in fleet.agents.values():
            if agent.phase not in LIVE and agent.kills < MAX_KILLS:
                continue  # one that could not be killed may be gone by now, after a reboot at the latest
            self._performer.listen_to(agent.name, agent.launch, agent.session, now.run_time)
            if not self._adopt(agent.name, agent.launch, identities, now):
                events += self._guarded(f"the output of {agent.name}", self._last_words(agent.name, now))
                events.append(on.Exited(agent=agent.name, launch=agent.launch, ending=on.Ending.LOST))
        for number, pending in fleet.pending.items():
            if pending.step in OCCUPYING and not self._adopt(pending.who, pending.launch, identities, now):
                # Without an identity on record the gate was never opened: a result that lies there is an older one.
                ran = identities.get(pending.who, (0, None))[0] == pending.launch
                lost = on.Graded(number=number, launch=pending.launch, outcome=on.Outcome.LOST)
                events.append(checkout.read_end(self._layout, number, pending.launch, None, 0.0) if ran else lost)
        return [*events, *self._reconcile_jobs(fleet, identities, now)]

    def _reconcile_jobs(self, fleet: Fleet, identities: Identities, now: on.Moment) -> Iterator[on.Event]:
        for agent in fleet.agents:
            job_files.put_right(self._layout, agent, fleet.jobs)
        for job in fleet.jobs.values():
            if job.phase is Phase.WAITING or self._adopt(job.who, LAUNCH, identities, now):
                continue
            if job.who in identities:
                yield job_files.end_of(self._layout, job, None, watched=False)
            else:  # its gate was never opened
                yield on.SpawnFailed(who=job.who, launch=LAUNCH, reason="the supervisor ended before it began")

    def _adopt(self, who: str, launch: int, identities: Identities, now: on.Moment) -> bool:
        number, identity = identities.get(who, (0, None))
        return identity is not None and number == launch and self._launches.adopt(who, launch, identity, now.run_time)

    def _keep_watching(self, now: on.Moment) -> None:
        if self._watch is None:
            return
        trouble = self._watch.keep_alive()
        if trouble and trouble != self._trouble:
            self._report.note(now, "warning", f"files cannot be watched ({trouble}); polling continues")
        self._trouble = trouble

    def _take_happened(self) -> list[on.Event]:
        happened, self._performer.happened = self._performer.happened, []
        return happened

    def _listen(self, fleet: Fleet, now: on.Moment) -> Iterator[on.Event]:
        """Everybody now and then, the silent less often; who has yet to say a first word, and may be owed to, soon."""
        if now.run_time - self._looked_at < EXPECT_SECONDS:
            return
        self._looked_at = now.run_time
        everybody = now.run_time - self._listened_at >= LISTEN_SECONDS
        self._listened_at = now.run_time if everybody else self._listened_at
        for name, agent in fleet.agents.items():
            monitor = self._performer.monitors.get(name)
            if monitor is None or agent.phase not in LIVE or monitor.launch != agent.launch:
                continue
            if not (everybody and monitor.is_due(now.run_time)) and not _is_new(agent, now):
                continue
            try:
                heard = monitor.listen(now.run_time)
            except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
                del self._performer.monitors[name]
                yield _broken(f"the output of {name}", error)
                continue
            yield from heard
            yield from monitor.used()
            self._report.beat(monitor, now)

    def _ends(self, fleet: Fleet, now: on.Moment) -> Iterator[on.Event]:
        for launch, state in self._launches.over():
            if state is State.LINGERS:
                yield on.LeftProcesses(who=launch.who, launch=launch.number)
                continue
            try:
                events = self._end(fleet, launch, now)
            except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
                events = [_unseen_end(launch), _broken(f"the end of {launch.who}", error)]
            yield from events

    def _end(self, fleet: Fleet, launch: Launch, now: on.Moment) -> list[on.Event]:
        if (number := job_in(launch.who)) is not None:
            job = fleet.jobs.get(number)
            return [_unseen_end(launch) if job is None else job_files.end_of(self._layout, job, launch.code)]
        if (number := grade_in(launch.who)) is not None:
            seconds = now.run_time - launch.started if launch.child is not None else 0.0
            return [checkout.read_end(self._layout, number, launch.number, launch.code, seconds)]
        if launch.who not in self._performer.monitors:
            return [_unseen_end(launch)]
        return [*self._last_words(launch.who, now), self._judge(launch, now)]

    def _last_words(self, agent: str, now: on.Moment) -> Iterator[on.Event]:
        """Everything a launch printed before its end counts before its end does."""
        monitor = self._performer.monitors.get(agent)
        for _ in range(MAX_PIECES):
            if monitor is None or not monitor.tail.is_behind:
                break
            yield from monitor.listen(now.run_time)
        if monitor is not None:
            yield from monitor.listen(now.run_time, ended=True)
            monitor.consult(self._layout.state(agent))
            yield from monitor.used()

    def _judge(self, launch: Launch, now: on.Moment) -> on.Exited:
        monitor = self._performer.monitors[launch.who]
        said = monitor.said()
        if launch.code is None:
            ending = on.Ending.LOST
        else:
            ending = self._roster.runtime(launch.who).judge(launch.code, said)
        lines = said.stderr.strip().splitlines()
        detail = said.error or (lines[-1] if lines else f"exit code {launch.code}")
        monitor.message, monitor.phase = detail if ending is on.Ending.CRASHED else "", "ended"
        self._report.beat(monitor, now, ENDED.get(ending, Status.ERROR))
        return on.Exited(
            agent=launch.who,
            launch=launch.number,
            ending=ending,
            detail=one_line(detail, 300),
            until=None if said.limit_until is None else max(said.limit_until - time.time(), 0.0),
        )


def _is_new(agent: Agent, now: on.Moment) -> bool:
    return agent.phase in LIVE and not agent.has_output and now.run_time - agent.spawned_at < EXPECTED_FOR


def _broken(item: str, error: Exception) -> on.Broken:
    return on.Broken(item=item, reason=f"{type(error).__name__}: {one_line(str(error), 300)}")


def _unseen_end(launch: Launch) -> on.Event:
    """A launch is over, and nothing more can be said of it."""
    if (number := job_in(launch.who)) is not None:
        return on.JobEnded(number=number, code=launch.code)
    if (number := grade_in(launch.who)) is not None:
        return on.Graded(number=number, launch=launch.number, outcome=on.Outcome.LOST)
    return on.Exited(
        agent=launch.who, launch=launch.number, ending=on.Ending.CRASHED, detail="its output is unreadable"
    )
