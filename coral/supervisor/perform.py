"""Doing what was decided: one arm per action, nothing chosen here.

An action that fails is an event of the next turn. What may block goes to a few threads, whose results are events too.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import assert_never

from attempts.files import write_bytes
from attempts.record import Kind
from attempts.store import Store
from coral.agent_setup.clone import CloneRepair
from coral.agent_setup.command import program_of, session_of
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.jobs import LAUNCH
from coral.fleet.process_key import job_in, of_grade
from coral.fleet.run_state import Fleet
from coral.grading import checkout
from coral.journal import Journal
from coral.processes import process
from coral.processes.launches import Launches
from coral.processes.wakeup import Wakeup
from coral.records.index_feed import IndexFeed
from coral.records.integrity import IntegrityCheck, Seen
from coral.records.ledger import Ledger
from coral.supervisor import job_files
from coral.supervisor.activity import EditScanner
from coral.supervisor.alerts import SeenAlerts
from coral.supervisor.context import RunContext
from coral.supervisor.inbox import Inbox
from coral.supervisor.output import LineTail, OutputMonitor
from coral.supervisor.publisher import Publisher
from coral.supervisor.starts import Starter
from coral.supervisor.workers import WorkerPool
from coral.views.heartbeat_view import Shown
from coral.views.prompt import prompt
from coral.views.reasons import outcome_text, reason_data, reason_text, refusal, run_end_text
from coral.views.report import Report
from heartbeats.beat import Status
from workspace.cancellation import CancelToken
from workspace.disk import is_disk_problem
from workspace.errors import Unacceptable
from workspace.hub import take_in
from workspace.intake import Taken
from workspace.knowledge import snapshot

LAST_SECONDS = 10.0  # for what the threads have yet to do at the end
Work = do.TakeIn | do.Grade


class Performer:
    """The hands of the supervisor. `happened` holds events for the next turn."""

    def __init__(
        self,
        run_context: RunContext,
        launches: Launches,
        journal: Journal,
        inbox: Inbox,
        report: Report,
        wakeup: Wakeup,
        ledger: Ledger,
    ) -> None:
        self.happened: list[on.Event] = []
        self.lacking = ""  # what failed last for want of space on the disk
        self.monitors: dict[str, OutputMonitor] = {}
        self._context = run_context
        self._layout = run_context.layout
        self._launches = launches
        self._journal = journal
        self._inbox = inbox
        self._report = report
        self._wakeup = wakeup
        self._store = Store(run_context.layout.attempts)
        self._ledger = ledger
        self._look: Future[Seen] | None = None
        self._shown = Shown(run_context.layout.heartbeats)
        self._pool = WorkerPool()
        self._looks = EditScanner(self._pool, wakeup.wake)
        self._clone_repair = CloneRepair(run_context, self._pool)
        self._tokens: dict[str, CancelToken] = {}
        self._feed = IndexFeed(run_context.layout.attempts, self._pool)
        self._scrub = IntegrityCheck(self._store, ledger, self._feed.add)
        self._work: dict[Future[object], Work] = {}
        self._publisher = Publisher(run_context, self._store, ledger, self._feed, report, self._tell_once)
        self._unpublished: dict[int, do.Publish] = {}
        self._unsaid: dict[str, do.Notify] = {}
        self._starter = Starter(launches, journal)
        self._unshown: dict[int, do.ShowJob] = {}
        self._told = SeenAlerts()

    def perform(self, actions: Iterable[do.Action], fleet: Fleet, now: on.Moment) -> None:
        for action in actions:
            try:
                self._do(action, fleet, now)
            except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
                self._failed(action, error)
        self.happened += self._starter.commit()

    def collect(self, fleet: Fleet) -> None:
        """What the threads have finished: their results become events."""
        self._pool.advance()
        for future in [each for each in self._work if each.done()]:
            work = self._work.pop(future)
            self._tokens.pop(of_grade(work.number), None)
            try:
                self._take(work, future.result(), fleet)
            except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
                self._failed(work, error)
        self.happened += self._looks.over()

    def write_again(self, fleet: Fleet, now: on.Moment) -> None:
        """Records and alerts that could not be written: the disk may have space by now."""
        again: list[do.Action] = [*self._unpublished.values(), *self._unsaid.values(), *self._unshown.values()]
        self.perform(again, fleet, now)

    def scrub(self, fleet: Fleet, now: on.Moment) -> Iterator[on.Event]:
        """Look whether what only we write is as we left it: some of the records, and of the heartbeats in force."""
        for owner in self._shown.altered():
            self._shown.show(fleet, owner, now.run_time)
            yield on.Restored(item=f"heartbeats/{owner}.yaml", found="was altered")
        yield from self._journal.mend()
        if self._look is not None and self._look.done():
            done, self._look = self._look, None
            yield from self._scrub.take(done.result(), fleet.run.next_number, fleet.pending)
        if self._look is None:
            leaders = [each.number for each in self._context.standings.top]
            self._look = self._pool.submit(self._scrub.look, leaders)

    def close(self) -> None:
        """End what the threads are at, and keep the history of what was written since the last snapshot."""
        for token in self._tokens.values():
            token.cancel()
        self._pool.submit(snapshot, self._layout.shared, "at the end")
        self._pool.finish(LAST_SECONDS)
        self._scrub.close()

    def _do(self, action: do.Action, fleet: Fleet, now: on.Moment) -> None:  # noqa: C901 - one arm per action
        match action:
            case do.TakeIn():
                clone = self._layout.clone(action.agent)
                self._submit(action, take_in, self._layout.hub, clone, action.commit, action.number)
            case do.Accept(agent=agent, submission=submission, number=number):
                self._store.reply(agent, submission, {"attempt": number})
                self._store.clear(agent, submission)
            case do.Refuse(agent=agent, submission=submission, reason=reason):
                text, hint = refusal(reason)
                reply: dict[str, object] = {"refused": text, "hint": hint, "reason": reason_data(reason)}
                self._store.reply(agent, submission, reply)
                self._store.clear(agent, submission)
            case do.Discard(agent=agent, submission=submission):
                self._store.clear(agent, submission)
            case do.Grade():
                self._submit(action, checkout.make_ready, self._layout, self._context.config.grader, action)
            case do.StartGrader(number=number, launch=launch):
                who = of_grade(number)
                tag = self._launches.tag(who, launch)
                program = checkout.program(self._layout, self._context.config.grader, action, tag)
                self._starter.prepare(who, launch, program, now.run_time)
            case do.CleanUpGrade(number=number, launch=launch, whole=whole):
                self._pool.submit(checkout.remove, checkout.set_aside(self._layout, number, launch, whole))
            case do.Publish():
                self._publish(action, fleet, now)
            case do.Spawn():
                self._spawn(action, fleet, now)
            case do.StartJob(job=job):
                program = job_files.program(self._context, job, self._launches.tag(job.who, LAUNCH))
                self._starter.prepare(job.who, LAUNCH, program, now.run_time)
                job_files.show_begin(self._layout, job)
            case do.ShowJob(job=job, end=end):
                job_files.show_end(self._layout, action)
                self._unshown.pop(job.number, None)
                self._report.note(now, "job", f"job {job.number} {outcome_text(end)}", job.agent)
            case do.Interrupt() | do.Terminate() | do.Kill():
                self._signal(action, now)
            case do.ScanEdits(agent=agent):
                self._looks.begin(action, self._layout.clone(agent))
            case do.ShowHeartbeats(owner=owner):
                self._shown.show(fleet, owner, now.run_time)
            case do.Answer(sender=sender, id=id, ok=ok, message=message, hint=hint):
                self._inbox.answer(sender, id, {"ok": ok, "message": message, "hint": hint})
            case do.Notify():
                self._notify(action, now)
            case do.LogEvent():
                self._report.log(now, action)
            case do.Finish(end=end):
                text = f"stopped: {run_end_text(end)}"
                self._report.note(now, "stopped", text, reason=reason_data(end))
            case _:
                assert_never(action)

    def _failed(self, action: do.Action, error: Exception) -> None:
        """Whose fault it was, and what the decisions should know of it."""
        self.lacking = str(error) if is_disk_problem(error) else self.lacking
        reason = f"{type(error).__name__}: {error}" if not isinstance(error, OSError) else str(error)
        match action:
            case do.TakeIn(number=number):
                theirs = isinstance(error, Unacceptable)
                self.happened.append(
                    on.IntakeFailed(number=number, reason=str(error) if theirs else reason, our_fault=not theirs)
                )
            case do.Grade(number=number, launch=launch) if isinstance(error, Unacceptable):
                failed = on.Outcome.FAILED
                self.happened.append(on.Graded(number=number, launch=launch, outcome=failed, reason=str(error)))
            case do.Grade(number=number, launch=launch) | do.StartGrader(number=number, launch=launch):
                self._starter.cancel(of_grade(number))
                self.happened.append(on.SpawnFailed(who=of_grade(number), launch=launch, reason=reason))
            case do.Spawn(agent=agent, launch=launch):
                self._starter.cancel(agent)
                self.happened.append(on.SpawnFailed(who=agent, launch=launch, reason=reason))
            case do.StartJob(job=job):
                self._starter.cancel(job.who)
                self.happened.append(on.SpawnFailed(who=job.who, launch=LAUNCH, reason=reason))
            case do.ScanEdits(agent=agent, launch=launch):
                self.happened.append(on.EditsScanned(agent=agent, launch=launch))
                self._tell_once(f"the look at the files of {agent}", reason)
            case do.ShowJob(job=job):
                self._unshown[job.number] = action
                self._tell_once(f"the record of job {job.number}", reason)
            case do.Publish(attempt=attempt):
                self._unpublished[attempt.number] = action
                self._tell_once(f"the record of #{attempt.number}", reason)
            case _:
                self._tell_once(f"the action {type(action).__name__}", reason)

    def _tell_once(self, item: str, reason: str) -> None:
        if self._told.is_new(item, reason):
            self.happened.append(on.Broken(item=item, reason=reason))

    def _submit(self, work: Work, function: Callable[..., object], *arguments: object) -> None:
        token = self._tokens[of_grade(work.number)] = CancelToken()
        future: Future[object] = self._pool.submit_cancellable(token, function, *arguments)
        self._work[future] = work
        future.add_done_callback(lambda _: self._wakeup.wake())

    def _take(self, work: Work, result: object, fleet: Fleet) -> None:
        if isinstance(work, do.TakeIn) and isinstance(result, Taken):
            submission = fleet.pending[work.number].submission
            duplicate = self._ledger.duplicate_of(result.tree, submission.kind is Kind.TUNE)
            self.happened.append(checkout.taken_in(work.number, result, duplicate))
        elif isinstance(work, do.Grade):
            self.happened.append(on.CheckedOut(number=work.number, launch=work.launch))

    def _publish(self, action: do.Publish, fleet: Fleet, now: on.Moment) -> None:
        number = action.attempt.number
        self._publisher.publish(action, fleet, now)
        self._unpublished.pop(number, None)
        self.happened.append(on.Published(number=number))
        self._publisher.tidy(action.attempt, self._pool)

    def _notify(self, action: do.Notify, now: on.Moment) -> None:
        """Said once it stands in the timeline; until then it is said again at each poll."""
        if self._report.alert(now, action):
            self._unsaid.pop(action.id, None)
            self.happened.append(on.Notified(id=action.id))
        else:
            self._unsaid[action.id] = action

    def _spawn(self, action: do.Spawn, fleet: Fleet, now: on.Moment) -> None:
        agent, launch, layout = action.agent, action.launch, self._layout
        self._clone_repair.restore(agent)
        text, warnings = prompt(self._context, fleet, action, now.run_time)
        for warning in warnings:
            self._report.note(now, "warning", warning, agent)
        write_bytes(layout.prompt(agent, launch), text.encode("utf-8", "replace"), durable=False)
        program, session = program_of(self._context, fleet, action, self._launches.tag(agent, launch))
        self._starter.prepare(agent, launch, program, now.run_time)
        self.listen_to(agent, launch, session, now.run_time)
        names = list(dict.fromkeys(each.name for each in action.messages))
        said = f"launch {launch} ({reason_text(action.reason)}){': ' + ', '.join(names) if names else ''}"
        given = {"launch": launch, "reason": reason_data(action.reason), "heartbeats": names}
        self._report.note(now, "spawned", said, agent, **given)
        self._report.beat(self.monitors[agent], now, Status.PENDING)

    def listen_to(self, agent: str, launch: int, session: str | None, clock: float) -> None:
        """Start reading what a launch prints, from its beginning. A session that it began may be unheard of yet."""
        session = session or session_of(self._context, agent, launch)
        output, errors = LineTail(self._layout.output(agent, launch)), self._layout.errors(agent, launch)
        self.monitors[agent] = OutputMonitor(
            agent, launch, self._context.roster.runtime(agent), output, errors, session, beat_at=clock
        )

    def _signal(self, action: do.Interrupt | do.Terminate | do.Kill, now: on.Moment) -> None:
        launch = self._launches.find(action.who, action.launch)
        if launch is None:
            if token := self._tokens.get(action.who):
                token.cancel()  # it is being checked out
            return
        match action:
            case do.Interrupt():
                process.interrupt(launch.identity)
                if job_in(action.who) is None:  # of a job it is said why
                    self._report.note(now, "interrupted", f"launch {action.launch}", action.who)
            case do.Terminate():
                process.terminate(launch.identity, launch.tag)
            case do.Kill():
                process.kill(launch.identity, launch.tag)
