"""The supervisor's loop. Each turn gathers events, decides what to do, writes that down, and does it.

1. Gather: what happened since the last turn, as events. Reading decides nothing.
2. Decide: `coral.fleet.decide` returns the fleet as it is after these events, and the actions that follow. It is pure.
3. Write: events, actions and changes are a line of the journal. Until it is written, nothing of it is done.
4. Perform: each action is carried out. What one comes to, or why it failed, is an event of a later turn.

Then the loop sleeps until the next deadline in the fleet, until a reader has something to read, or until it is woken:
by a changed inbox, the end of a child, a signal, a worker thread. A lost wake-up costs time only. The loop itself
chooses nothing.

`coral start` and `coral resume` call `supervise` in the terminal, or detach a process that does (`coral.runs.detach`).
"""

import contextlib
import gc
import hashlib
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator

from attempts.files import read_bytes
from attempts.record import Attempt
from attempts.standing import noise_of
from attempts.store import Store, StoreError
from coral.agent_setup.own_user import divided_for_level
from coral.agent_setup.roster import Roster, check_same_programs
from coral.config.load import Config, load_frozen
from coral.errors import CoralError
from coral.fleet import actions as do, events as on
from coral.fleet.decide import decide, next_deadline
from coral.fleet.expected_processes import settled
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.fleet.run_state import Fleet, Run
from coral.grading.venv import venv_of
from coral.journal import Journal, fold, salvaged
from coral.notify.notifier import Notifier
from coral.processes import process, received_signals
from coral.processes.launch_tags import tags_of
from coral.processes.launches import Launches
from coral.processes.process_tree import members
from coral.processes.wakeup import Wakeup
from coral.records.ledger import Ledger
from coral.records.recent import RECENT, RecentResults
from coral.runs import reload
from coral.runs.prepare import add_agents
from coral.runs.rules import rules_of
from coral.runs.verify import verify
from coral.supervisor.clock import Clock, since
from coral.supervisor.context import RunContext
from coral.supervisor.cpu_watch import ProcessWatch
from coral.supervisor.degraded import SIGNAL_PREFIX, Degraded, reason_of
from coral.supervisor.event_queue import EventQueue
from coral.supervisor.folder_watch import FolderWatch
from coral.supervisor.gather import DamageCheck, Gatherer
from coral.supervisor.inbox import Inbox
from coral.supervisor.lock import Lock, RunFolderGuard, hold_lock, is_gone
from coral.supervisor.output_monitor import OutputMonitors
from coral.supervisor.perform import Performer
from coral.supervisor.run_folders import RunFolders
from coral.supervisor.starts import Starter
from coral.supervisor.workers import WorkerPool
from coral.views.fleet_view import HeartbeatFiles
from coral.views.report import Report, end_lost_jobs
from workspace.clone_overlay import place
from workspace.git import load
from workspace.layout import OPERATOR, Layout

Begin = Callable[[], object]
RETRY_SECONDS = 1.0  # how soon to try again when the journal cannot be written
MAX_SLEEP = 60.0
# Ends of the run that come by themselves: nobody waits for them, as the user of `coral stop` does.
VERIFIED_ENDS = {
    RunEndKind.BUDGET,
    RunEndKind.TARGET,
    RunEndKind.PLATEAU,
    RunEndKind.USAGE_LIMIT,
    RunEndKind.ALL_RETIRED,
}
LOCK = "the lock that keeps a second supervisor out"


class Supervisor:
    """One supervisor of one run. It must hold the run's lock."""

    def __init__(
        self, layout: Layout, seed_commit: str, config: Config | None = None, change: on.TaskChanged | None = None
    ) -> None:
        """`config`: the run's task, if it is loaded already. `change`: whether another task was just installed."""
        config = config or load_frozen(layout.task_file)
        self._journal = Journal(layout.journal)
        memory = self._journal.recovered
        self._layout, self._change = layout, change
        self._fleet = memory.fleet
        self._away = since(memory.wall)
        # A copied folder has no processes to take over: those in its journal belong to the original.
        self._identities = memory.identities if memory.folder == _folder(layout) else {}
        self._rules = rules_of(config, Roster(config), seed_commit)
        roster = Roster(config, memory.members)
        self._clock = Clock(memory.clock)
        self._wakeup = Wakeup()
        self._queue = EventQueue(self._wakeup.wake)
        self._pool = WorkerPool()
        self._ledger = _ledger_of(layout, self._fleet)
        records = self._ledger.outline(RECENT) or [Store(layout.attempts).read(0)]
        results = RecentResults(records)
        level, config = divided_for_level(layout, config, roster)
        run_context = RunContext(layout, config, self._rules, results, roster, level, venv_of(layout.grader))
        self._launches = Launches(tags_of(layout), self._wakeup)
        self._agents = tuple(dict.fromkeys([*self._fleet.agents, *roster]))
        self._monitors = OutputMonitors(run_context)
        self._report = Report(run_context, records[0].published_at)  # the seed's, also after a resume
        heartbeat_files = HeartbeatFiles(layout.heartbeats)
        folders = RunFolders(layout, self._agents)
        damage = DamageCheck(run_context, folders, heartbeat_files, self._journal, self._ledger, self._pool)
        watched = (layout.attempts / "inbox", layout.requests)
        self._gatherer = Gatherer(
            run_context,
            self._launches,
            Inbox(layout, self._agents),
            self._monitors,
            self._queue,
            damage,
            ProcessWatch(run_context, self._launches, self._pool, self._wakeup.wake),
            FolderWatch(watched, self._wakeup.wake) if config.run.watch else None,
        )
        starter = Starter(run_context, self._launches, self._journal, self._monitors, self._report, self._pool)
        self._performer = Performer(
            run_context, self._launches, starter, heartbeat_files, self._report, self._ledger, self._pool, self._queue
        )
        self._notifier = Notifier(layout, config.task.name, config.alerts)
        self._files: tuple[dict[str, str], dict[str, str]] = (self._performer.task_digests, {})
        self._degraded = Degraded()
        self._supervises, self._journal_error = False, ""  # whether the journal says so; why it cannot be written
        self._due = float("-inf")  # on the run's clock: before that, only an event changes anything

    def run(self, lock: Lock) -> RunEnd | None:
        """Supervise until the run ends or is left; returns why. CoralError if another supervisor has the run by now."""
        guard = RunFolderGuard(self._layout, lock, lambda: self.stop(RunEnd(RunEndKind.FOLDER_GONE)))
        self._notifier.start()
        self._turn(self._first_events(self._clock.now()))
        while not _is_over(self._current.run):
            self._forget_change()
            restored = guard.restore_lock(self._clock.now().run_time)
            self._turn([on.Restored(item=LOCK, found="was removed", source="memory")] if restored else [])
        self._report.show(self._current, self._monitors.by_agent, self._clock.now(), force=True)
        return self._current.run.finished or self._current.run.detached_reason

    def verify_best(self, end: RunEnd | None) -> None:
        """Grade the best attempt again, strictly, and write the result to the timeline, if nobody waits for this end.
        The seed is not graded: no agent has claimed it. Blocks; an interrupt ends it."""
        standing, epoch = self._current.standing, self._current.run.epoch
        best = standing.best_measured if end is not None and end.kind in VERIFIED_ENDS else None
        attempt = None if best is None or best.is_seed else Store(self._layout.attempts).find(best.number)
        if best is None or attempt is None or attempt.epoch < epoch:
            return
        now = self._clock.now()
        self._report.write_line(now, "verifying", f"#{best.number}, the best: it is graded again", attempt=best.number)
        noise = noise_of(standing, self._rules.scoring, best.value)
        try:
            found = verify(self._layout, attempt, best.scores, noise)
            type, text = "verified" if found.is_same else "warning", found.text
        except (CoralError, OSError) as error:
            type, text = "warning", str(error)
        except KeyboardInterrupt:
            return
        self._report.write_line(self._clock.now(), type, text, attempt=best.number)

    def _forget_change(self) -> None:
        """Remove the staged task once the journal says that it is in force."""
        if self._change is not None and self._supervises and self._degraded.unrecorded_fleet is None:
            reload.discard(self._layout)
            self._change = None

    def keep_digests(self) -> None:
        """Keep the journalled digests of the task's files: for a supervisor that only ends the run."""
        self._files = (self._journal.recovered.files, self._journal.recovered.expected)

    def stop(self, end: RunEnd) -> None:
        """Ask for the end of the run, from a signal handler too."""
        id = f"{SIGNAL_PREFIX}{time.time_ns()}"
        self._queue.put(on.Requested(sender=OPERATOR, id=id, request=on.Stop(end=end)))

    def close(self) -> None:
        self._notifier.close()
        self._performer.close()
        self._gatherer.close()
        self._launches.close()
        self._journal.close()
        self._ledger.close()
        self._wakeup.close()

    @property
    def _current(self) -> Fleet:
        return self._degraded.unrecorded_fleet or self._fleet

    def _first_events(self, now: on.Moment) -> list[on.Event]:
        if not self._fleet.run.opened:
            baseline = Store(self._layout.attempts).read(0)
            return [on.Opened(run=self._layout.root.name, agents=self._agents, baseline=baseline)]
        for agent in self._agents:
            end_lost_jobs(self._layout, agent, self._fleet.jobs)
        self._performer.take_over(self._fleet)
        changes = [event for event in (self._journal.recovered.rolled_back, self._change) if event is not None]
        return [on.Resumed(away=self._away), *changes, *self._gatherer.reconcile(self._fleet, self._identities, now)]

    def _turn(self, first: list[on.Event]) -> None:
        now = self._clock.now()
        self._pool.advance()
        fresh = [*first, *self._gatherer.gather(self._fleet, now)]
        for monitor in self._monitors.take_marked():
            self._report.beat(monitor, self._fleet, now)
        if self._must_decide(fresh, now):
            self._decide_and_perform(fresh, now)
        if self._degraded.unrecorded_fleet is None:
            self._report.show(self._fleet, self._monitors.by_agent, now)
            if not _is_over(self._fleet.run):
                self._sleep(now)

    def _must_decide(self, events: list[on.Event], now: on.Moment) -> bool:
        """Return whether anything happened or is due, which is rare in an idle fleet."""
        is_degraded = self._degraded.unrecorded_fleet is not None
        return bool(events) or is_degraded or now.run_time >= self._due or self._journal.is_quiet(now)

    def _decide_and_perform(self, fresh: list[on.Event], now: on.Moment) -> None:
        events = [*self._degraded.unwritten, *fresh]
        after, actions = decide(self._fleet, events, now, self._rules)
        try:
            self._write(events, actions, after, now)
        except OSError as error:
            self._go_on_without_journal(fresh, now, error)
            return
        self._fleet, self._journal_error = after, ""
        self._degraded.end()
        self._performer.perform(actions, self._fleet, now)
        deadline = next_deadline(self._fleet, now.run_time, self._rules)
        self._due = float("inf") if deadline is None else deadline

    def _write(self, events: list[on.Event], actions: tuple[do.Action, ...], after: Fleet, now: on.Moment) -> None:
        if not self._supervises:
            self._journal.open_supervision(self._rules, now, _folder(self._layout), *self._files)
            self._supervises = True
        if actions or _differs(self._fleet, after):
            self._journal.record(now, events, actions, self._fleet, after)
        else:
            self._journal.record_time(now)

    def _go_on_without_journal(self, fresh: list[on.Event], now: on.Moment, error: OSError) -> None:
        """End what must end, and try to write again soon."""
        actions = self._degraded.decide(self._fleet, fresh, now, self._rules, error)
        self._performer.perform(actions, self._fleet, now)
        text = reason_of(error)
        self._queue.put_disk_error(text)
        if self._journal_error != text:
            self._journal_error = text
            self._report.write_line(now, "warning", text)
        self._report.show(self._current, self._monitors.by_agent, now)
        self._wait(RETRY_SECONDS)

    def _sleep(self, now: on.Moment) -> None:
        passed = self._clock.now().run_time - now.run_time
        self._wait(
            min(self._due - now.run_time, MAX_SLEEP, self._gatherer.seconds_to_reading(self._fleet, now)) - passed
        )

    def _wait(self, seconds: float) -> None:
        self._clock.sleep(seconds)
        self._launches.suspect(self._wakeup.wait(seconds))


def supervise(
    layout: Layout,
    overrides: tuple[str, ...] = (),
    *,
    config: Config | None = None,
    begin: Begin = lambda: None,
    outlives_terminal: bool = False,
    stop: RunEnd | None = None,
) -> int:
    """Hold the run's lock and supervise the run in this process to its end; return the exit code.

    `overrides` (`budget.hours=4`) change the run's task from here on. `config`: that task, if the caller has loaded it
    and nothing overrides it. `begin`: called first, under the lock. `stop`: only end the run, for this reason.
    CoralError if the run cannot be supervised.
    """
    process.rearm_interrupts()
    with received_signals.hold() as held, hold_lock(layout.lock) as lock:
        load()
        change = reload.install(layout) if stop is None else None  # a run that is only ended needs no other task
        config = config if change is None else None
        if overrides:
            _change_task(layout, overrides)
        try:
            supervisor = Supervisor(layout, read_bytes(layout.seed_commit).decode().strip(), config, change)
        except (OSError, ValueError) as error:
            raise CoralError(f"cannot supervise this run: {error}", "see its disk, and whose folder it is") from error
        # What exists by now stays: to collect garbage among it would take 30 ms, for which somebody would wait.
        gc.freeze()
        gc.set_threshold(700)
        if stop is not None:
            supervisor.keep_digests()
            supervisor.stop(stop)

        def on_signal(number: int) -> None:
            if number != signal.SIGHUP or not outlives_terminal:
                supervisor.stop(RunEnd(RunEndKind.SIGNAL, detail=signal.Signals(number).name))

        try:
            if stop is None:
                held.check()  # nothing has begun yet
            begin()
            with held.handled_by(on_signal):
                end = supervisor.run(lock)
            supervisor.verify_best(end)
            if is_gone(layout):
                hint = "if it was moved, `coral resume --run PATH` continues it"
                raise CoralError(f"the run has ended: {layout.root} was removed or moved", hint)
            return 0
        finally:
            supervisor.close()


def end_processes(layout: Layout) -> int:
    """End what a run's journal says was started, if its task is broken and it cannot be supervised. Returns how many
    launches had processes."""
    with hold_lock(layout.lock):
        memory = fold(layout.journal)
        started = memory.identities if memory.folder == _folder(layout) else {}
        tags, ended = tags_of(layout), 0
        for who, (number, identity) in started.items():
            tag = tags.of(who, number)
            ended += bool(members(identity, tag))
            process.kill(identity, tag)
        return ended


def _change_task(layout: Layout, overrides: tuple[str, ...]) -> None:
    """Change the run's task for this supervisor and later ones."""
    before, after = load_frozen(layout.task_file), load_frozen(layout.task_file, overrides)
    with contextlib.closing(Journal(layout.journal)) as journal:
        known = journal.recovered.fleet
        check_same_programs(before, after, known.agents, known.run.members)
        digest = hashlib.sha256(after.text.encode()).hexdigest()
        journal.expect_files({**journal.recovered.expected, layout.task_file.name: digest})
    add_agents(layout, after)
    place(layout.private, layout.task_file.name, after.text)


def _is_over(run: Run) -> bool:
    """Return whether the supervisor has nothing more to do: everything has ended, or goes on without it."""
    return bool(run.finished or run.detached_reason)


def _ledger_of(layout: Layout, fleet: Fleet) -> Ledger:
    """Open the ledger of what was published. CoralError if the journal is gone: a new one would start at number 1."""
    if not fleet.run.opened and (layout.attempts / "000001.json").exists():
        hint = f"put it back from a backup; {layout.attempts} and the hub are as they were"
        raise CoralError(f"cannot resume {layout.root.name}: its journal is gone, and its attempts are there", hint)
    unsure = settled(fleet)
    count = fleet.run.order + 1 if fleet.run.opened else 0
    store = Store(layout.attempts)

    def unvouched(known: Collection[int]) -> Iterator[Attempt]:
        for number in store.numbers():
            if number < fleet.run.next_number and number not in known and number not in fleet.pending:
                with contextlib.suppress(StoreError, OSError):
                    yield store.read(number)

    ledger = Ledger(layout.ledger, lambda: salvaged(layout.journal), count, unsure, unvouched)
    ledger.ensure(count, unsure)
    return ledger


def _folder(layout: Layout) -> tuple[int, int]:
    """Return device and inode of the run's folder: a copy of the run has others."""
    found = layout.root.stat()
    return found.st_dev, found.st_ino


def _differs(before: Fleet, after: Fleet) -> bool:
    """Return whether anything changed that must be journalled: a decision replaces only records that it changes."""
    if before.run is not after.run or before.pending != after.pending or before.heartbeats != after.heartbeats:
        return True
    if before.jobs != after.jobs:
        return True
    return any(before.agents.get(name) is not agent for name, agent in after.agents.items())


def supervise_detached(
    layout: Layout, overrides: tuple[str, ...] = (), config: Config | None = None, begin: Begin = lambda: None
) -> int:
    """Supervise in a detached process, which logs to the run's folder; returns the exit code."""
    try:
        return supervise(layout, overrides, config=config, begin=begin, outlives_terminal=True)
    except CoralError as error:
        print(error, file=sys.stderr)
        return 1
