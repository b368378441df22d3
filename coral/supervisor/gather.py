"""Gathers what happened since the last turn and returns it as events. Nothing is decided here, and nothing is started.

Each source has a reader: the disk, the files that only the supervisor writes, the event queue, the inboxes, the output
of agents, the processes that ended. An item that cannot be read becomes `Broken`, and the other items are read as
usual.
"""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future

from attempts.fields import one_line
from attempts.standing import ranked
from attempts.store import Store
from coral.agent_setup.launch import session_of
from coral.agent_setup.remote import agents_cluster_problem, was_lost
from coral.fleet import events as on
from coral.fleet.expected_processes import agents_to_find, grades_to_find, is_starting, jobs_to_find, live_agents
from coral.fleet.jobs import JOB_LAUNCH
from coral.fleet.policy import intake_capacity, slots_of
from coral.fleet.process_key import grade_in, job_in
from coral.fleet.run_state import Fleet
from coral.grading.remote import cluster_capacity, cluster_problem, excluded_nodes
from coral.grading.result import graded_event
from coral.journal import Journal
from coral.processes.launches import Launch, Launches, LaunchState
from coral.processes.process_tree import Identity
from coral.records.integrity import CheckResult, IntegrityCheck
from coral.records.ledger import Ledger
from coral.supervisor.context import RunContext
from coral.supervisor.cpu_watch import ProcessWatch
from coral.supervisor.disk import DiskCheck
from coral.supervisor.event_queue import EventQueue, SeenFailures
from coral.supervisor.folder_watch import FolderWatch
from coral.supervisor.inbox import Inbox
from coral.supervisor.job_end import read_job_end
from coral.supervisor.machine import MachineWatch
from coral.supervisor.output_monitor import OutputMonitor, OutputMonitors
from coral.supervisor.run_folders import RunFolders
from coral.views.fleet_view import HeartbeatFiles
from heartbeats.beat import Status
from workspace.pins import Pins

OUTPUT_SECONDS = 0.5  # how often the output of agents is read
STARTING_SECONDS = 0.05  # how often it is read while the first output of a launch is expected
CHECK_SECONDS = 5.0  # how often the supervisor's files are checked, however rarely the inboxes are read
MORE_SECONDS = 0.2  # how soon inboxes are read again, if one holds more files than are read at a time
MAX_PIECES = 64  # pieces of output that are read at most when a launch has ended
STATUS_OF = {on.Ending.CLEAN: Status.SUCCESS, on.Ending.INTERRUPTED: Status.CANCELLED}
NEVER = float("-inf")
LEADERS = 10  # the best attempts, whose records are checked each time, because agents build on them

Identities = Mapping[str, tuple[int, Identity]]


class DamageCheck:
    """Checks whether somebody else has changed what only the supervisor writes: its folders, the files of heartbeats in
    force, the journal, the records. Agents that are not sealed can do so.

    Folders and the journal are restored while they are read; the others are restored by actions.
    """

    def __init__(
        self,
        run_context: RunContext,
        folders: RunFolders,
        heartbeat_files: HeartbeatFiles,
        journal: Journal,
        ledger: Ledger,
        pool: Executor,
    ) -> None:
        layout = run_context.layout
        self._folders = folders
        self._scoring = run_context.rules.scoring
        self._heartbeat_files = heartbeat_files
        self._journal = journal
        pins = Pins(layout)
        self._records = IntegrityCheck(Store(layout.attempts), ledger, pins.restore, pins.restore_files)
        self._pool = pool
        self._running_check: Future[CheckResult] | None = None

    def read(self, fleet: Fleet) -> Iterator[on.Event]:
        """Yield what was found to be changed. The records are compared in a worker thread; the next call reports its
        result."""
        self._folders.add_agents(fleet.agents)
        yield from self._folders.restore()
        yield from (on.HeartbeatsAltered(owner=owner) for owner in self._heartbeat_files.altered())
        yield from self._journal.repair()
        if self._running_check is not None and self._running_check.done():
            done, self._running_check = self._running_check, None
            yield from self._records.report(done.result(), fleet.run.next_number, fleet.pending)
        if self._running_check is None:
            leaders = [measured.number for measured in ranked(fleet.standing, self._scoring)[:LEADERS]]
            self._running_check = self._pool.submit(self._records.check_next, leaders)

    def close(self) -> None:
        self._records.close()


class Gatherer:
    def __init__(
        self,
        run_context: RunContext,
        launches: Launches,
        inbox: Inbox,
        monitors: OutputMonitors,
        queue: EventQueue,
        damage: DamageCheck,
        processes: ProcessWatch,
        watch: FolderWatch | None,
    ) -> None:
        self._context = run_context
        self._layout = run_context.layout
        self._launches = launches
        self._inbox = inbox
        self._monitors = monitors
        self._queue = queue
        self._damage = damage
        self._processes = processes
        self._watch = watch
        self._disk = DiskCheck(run_context.layout.private)
        self._machine = MachineWatch()
        self._poll_seconds = run_context.config.run.poll_seconds
        self._check_seconds = min(self._poll_seconds, CHECK_SECONDS)
        self._polled_at = self._checked_at = self._collected_at = NEVER
        self._all_read_at = self._output_read_at = NEVER  # when the output of all agents was last read, and that of any
        self._full: set[str] = set()  # agents whose inbox waits for room
        self._watch_error = ""
        self._broken: set[str] = set()  # sources that could not be read at the last turn
        self._seen_failures = SeenFailures()

    def gather(self, fleet: Fleet, now: on.Moment) -> list[on.Event]:
        """Return everything that happened since the last turn, in the order in which a person would tell it."""
        disk_problem = self._disk.check(now.run_time, self._queue.take_disk_error())
        # "Disk full" comes first and "disk usable" last, so that failures in between are nobody's fault.
        events: list[on.Event] = [on.DiskChecked(problem=disk_problem)] if disk_problem else []
        polls = now.run_time - self._polled_at >= self._poll_seconds
        if polls:
            self._polled_at = now.run_time
            events += self._keep_watching()
            self._launches.suspect_all()
        if now.run_time - self._checked_at >= self._check_seconds:
            self._checked_at = now.run_time
            events += self._guarded("the check of the records", self._damage.read(fleet))
            events += self._guarded("the state of the machine", self._machine.check(now.run_time))
            events += self._guarded("the state of the cluster", self._check_cluster(fleet))
        events += self._from_queue()
        events += self._read_inboxes(fleet, polls, now)
        events += self._read_output(fleet, now)
        events += self._guarded("what processes use", self._watch_processes(fleet, now))
        events += self._guarded("the launches that are over", self._ends(fleet, now))
        return [*events, on.DiskChecked(problem="")] if disk_problem == "" else events

    def seconds_to_reading(self, fleet: Fleet, now: on.Moment) -> float:
        """Return in how many seconds there is something to read again, at least 0."""
        if not self._queue.is_empty:
            return 0.0
        live = live_agents(fleet)
        times = [self._polled_at + self._poll_seconds, self._checked_at + self._check_seconds]
        if self._disk.next_check is not None:
            times.append(self._disk.next_check)
        if (watched := self._processes.next_reading(fleet)) is not None:
            times.append(watched)
        if self._inbox.more:
            times.append(self._collected_at + MORE_SECONDS)
        if live:
            starting = any(is_starting(agent, now.run_time) for agent in live)
            times.append(self._output_read_at + (STARTING_SECONDS if starting else OUTPUT_SECONDS))
        seconds = min(times) - now.run_time
        if self._launches.seconds_to_check is not None:
            seconds = min(seconds, self._launches.seconds_to_check)
        return max(seconds, 0.0)

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self._damage.close()

    # The first turn of a new supervisor.

    def reconcile(self, fleet: Fleet, identities: Identities, now: on.Moment) -> Iterator[on.Event]:
        """Take over the launches that still run after a change of supervisor, and yield an end for each of the others:
        as lost, because nobody saw it, or by the result that a grade or a job has left. `identities`: by process key,
        the last launch's number and identity from the journal."""
        for agent in agents_to_find(fleet):
            # A session that the launch began itself may be unknown yet.
            session = agent.session or session_of(self._context, agent.name, agent.launch)
            monitor = self._monitors.open(agent.name, agent.launch, session, now.run_time)
            if not self._adopt(agent.name, agent.launch, identities, now):
                yield from self._guarded(f"the output of {agent.name}", self._last_output(monitor, now))
                yield on.Exited(agent=agent.name, launch=agent.launch, ending=on.Ending.LOST)
        for attempt in grades_to_find(fleet):
            if not self._adopt(attempt.who, attempt.launch, identities, now):
                # A process without a journalled identity never ran: a result that lies there is an older one.
                ran = identities.get(attempt.who, (0, None))[0] == attempt.launch
                lost = on.Graded(number=attempt.number, launch=attempt.launch, outcome=on.Outcome.LOST)
                yield graded_event(self._layout, attempt.number, attempt.launch, None, 0.0) if ran else lost
        for job in jobs_to_find(fleet):
            if self._adopt(job.who, JOB_LAUNCH, identities, now):
                continue
            if job.who in identities:
                yield read_job_end(self._layout, job, None, watched=False)
            else:
                yield on.SpawnFailed(who=job.who, launch=JOB_LAUNCH, reason="the supervisor ended before it began")

    def _adopt(self, who: str, launch: int, identities: Identities, now: on.Moment) -> bool:
        number, identity = identities.get(who, (0, None))
        return identity is not None and number == launch and self._launches.adopt(who, launch, identity, now.run_time)

    # Readers.

    def _keep_watching(self) -> Iterator[on.Event]:
        error = self._watch.keep_alive() if self._watch is not None else ""
        if error != self._watch_error:
            yield on.WatchFailed(reason=error)
        self._watch_error = error

    def _check_cluster(self, fleet: Fleet) -> Iterator[on.Event]:
        grader = self._context.config.grader
        problem = cluster_problem(grader, self._layout.grader)
        if problem != fleet.run.cluster_problem:
            yield on.ClusterChecked(problem=problem)
        capacity = cluster_capacity(grader, self._layout.grader)
        if capacity is not None and capacity != fleet.run.cluster_capacity:
            yield on.ClusterMeasured(capacity=capacity)
        if (nodes := excluded_nodes(grader, self._layout.grader)) != fleet.run.excluded_nodes:
            yield on.NodesExcluded(nodes=nodes)
        if (problem := agents_cluster_problem(self._context)) != fleet.run.agents_cluster_problem:
            yield on.AgentsClusterChecked(problem=problem)

    def _from_queue(self) -> Iterator[on.Event]:
        """Yield the queued events, that is the results of actions. A failure that repeats is reported once."""
        for event in self._queue.take():
            if not isinstance(event, on.Broken) or self._seen_failures.is_new(event.item, event.reason):
                yield event

    def _read_inboxes(self, fleet: Fleet, polls: bool, now: on.Moment) -> Iterator[on.Event]:
        """Read all inboxes at a poll, or when an agent may submit again after it had too many submissions in hand; else
        read those that have changed."""
        self._inbox.add_agents(fleet.agents)
        touched = self._watch.take() if self._watch is not None else frozenset()
        capacity = intake_capacity(fleet.agents, fleet.pending.values(), slots_of(fleet.run, self._context.rules))
        before, self._full = self._full, {agent for agent, places in capacity.items() if not places}
        everywhere = polls or self._inbox.more or bool(before - self._full)
        if self._inbox.more:  # an inbox that is flooded always holds more: it is read at a pace
            is_due = now.run_time - self._collected_at >= MORE_SECONDS
        else:
            is_due = everywhere or bool(touched)
        if is_due:
            self._collected_at = now.run_time
            found = self._inbox.collect(now.run_time, capacity, None if everywhere else touched)
            yield from self._guarded("the inboxes", found)

    def _read_output(self, fleet: Fleet, now: on.Moment) -> Iterator[on.Event]:
        """Read what the agents' programs have printed: every OUTPUT_SECONDS, less often for silent ones; of starting
        agents every STARTING_SECONDS, because their first output acknowledges messages."""
        if now.run_time - self._output_read_at < STARTING_SECONDS:
            return
        self._output_read_at = now.run_time
        reads_all = now.run_time - self._all_read_at >= OUTPUT_SECONDS
        self._all_read_at = now.run_time if reads_all else self._all_read_at
        for agent in live_agents(fleet):
            monitor = self._monitors.find(agent.name, agent.launch)
            if monitor is None or not (
                (reads_all and monitor.is_due(now.run_time)) or is_starting(agent, now.run_time)
            ):
                continue
            try:
                seen = monitor.read(now.run_time)
            except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
                self._monitors.close(agent.name)
                yield _broken(f"the output of {agent.name}", error)
                continue
            yield from seen
            yield from monitor.used()
            self._monitors.mark(monitor)

    def _watch_processes(self, fleet: Fleet, now: on.Moment) -> Iterator[on.Event]:
        for event in self._processes.read(fleet, now.run_time):
            if isinstance(event, on.LifeSeen) and (monitor := self._monitors.find(event.agent, event.launch)):
                monitor.alive_at = now.run_time
                self._monitors.mark(monitor)
            yield event

    def _ends(self, fleet: Fleet, now: on.Moment) -> Iterator[on.Event]:
        for launch, state in self._launches.ended():
            if state is LaunchState.LEFT_PROCESSES:
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
            return [_unseen_end(launch) if job is None else read_job_end(self._layout, job, launch.code)]
        if (number := grade_in(launch.who)) is not None:
            seconds = now.run_time - launch.started if launch.child is not None else 0.0
            ended = launch.number, launch.code, seconds, launch.channel
            return [graded_event(self._layout, number, *ended, is_remote=self._context.config.grader.is_remote)]
        monitor = self._monitors.by_agent.get(launch.who)
        if monitor is None:
            return [_unseen_end(launch)]
        return [*self._last_output(monitor, now), self._judge(launch, monitor)]

    def _last_output(self, monitor: OutputMonitor, now: on.Moment) -> Iterator[on.Event]:
        """Read the rest of what a launch printed and used, so that it is handled before the launch's end."""
        for _ in range(MAX_PIECES):
            if not monitor.tail.has_more:
                break
            yield from monitor.read(now.run_time)
        yield from monitor.read(now.run_time, ended=True)
        monitor.read_usage_log(self._layout.state(monitor.agent))
        yield from monitor.used()

    def _judge(self, launch: Launch, monitor: OutputMonitor) -> on.Exited:
        summary = monitor.summary()
        is_lost = launch.code is None or was_lost(self._layout, launch.who, launch.number)
        ending = on.Ending.LOST if is_lost else monitor.runtime.judge(launch.code or 0, summary)
        if ending is on.Ending.CRASHED and launch.killed:
            ending = on.Ending.INTERRUPTED  # it was slow to end when we asked it to, which is no failure of its own
        lines = summary.stderr.strip().splitlines()
        detail = summary.error or (lines[-1] if lines else _unexplained(launch, monitor))
        if launch.code is not None and not self._layout.clone(launch.who).is_dir():
            # Whatever the program says of that: it is cloned again for the next launch.
            ending, detail = on.Ending.CRASHED, "its workspace was removed, and is made again"
        monitor.message, monitor.phase = detail if ending is on.Ending.CRASHED else "", "ended"
        monitor.status = STATUS_OF.get(ending, Status.ERROR)
        self._monitors.mark(monitor)
        return on.Exited(
            agent=launch.who,
            launch=launch.number,
            ending=ending,
            detail=one_line(detail, 300),
            began=monitor.has_begun,
            until=None if summary.limit_until is None else max(summary.limit_until - time.time(), 0.0),
        )

    def _guarded(self, source: str, events: Iterator[on.Event]) -> Iterator[on.Event]:
        """Yield the events of a source. If the source raises, the events before that count, and a `Broken` event
        reports the error, once until the source works again. The source is read again at the next turn."""
        try:
            yield from events
            self._broken.discard(source)
        except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
            if source not in self._broken:
                self._broken.add(source)
                yield _broken(source, error)


def _broken(item: str, error: Exception) -> on.Broken:
    return on.Broken(item=item, reason=f"{type(error).__name__}: {one_line(str(error), 300)}")


def _unexplained(launch: Launch, monitor: OutputMonitor) -> str:
    """Return the detail of the end of a program that named no error: its exit code, and the last that it printed, which
    may say why."""
    last = f"; the last it said: {monitor.message}" if monitor.message else ""
    return f"exit code {launch.code}{last}"


def _unseen_end(launch: Launch) -> on.Event:
    """Return the event for a launch that is over and of which nothing more can be read."""
    if (number := job_in(launch.who)) is not None:
        return on.JobEnded(number=number, code=launch.code)
    if (number := grade_in(launch.who)) is not None:
        return on.Graded(number=number, launch=launch.number, outcome=on.Outcome.LOST)
    return on.Exited(
        agent=launch.who, launch=launch.number, ending=on.Ending.CRASHED, detail="its output is unreadable"
    )
