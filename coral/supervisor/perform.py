"""Performs what was decided: one arm for each action, and nothing is chosen here.

Only short work is done at once; what may block is done by worker threads. What an action came to, or why it failed, is
put on the event queue, which the next turn gathers.

A verdict is published in the ledger, the record, the recent results, the reply to whoever waits, and the timeline. Each
step may be done again with the same result; the attempt is published once all are done.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import assert_never

from attempts.fields import one_line
from attempts.files import write_json
from attempts.record import OPEN, Attempt, Kind, Verdict
from attempts.standing import Scored
from attempts.store import Store
from coral.agent_setup.remote import is_placed
from coral.fleet import actions as do, events as on
from coral.fleet.policy import slots_of
from coral.fleet.process_key import job_in, of_grade
from coral.fleet.run_state import Fleet
from coral.grading import checkout
from coral.processes import process
from coral.processes.launches import Launches
from coral.records.index_feed import IndexFeed
from coral.records.integrity import restore
from coral.records.ledger import Ledger
from coral.runs.membership import prepare
from coral.runs.task_files import TaskFiles
from coral.supervisor.activity import last_edit
from coral.supervisor.context import RunContext
from coral.supervisor.event_queue import EventQueue
from coral.supervisor.starts import Starter
from coral.supervisor.workers import BackgroundActions, WorkerPool
from coral.views.fleet_view import HeartbeatFiles
from coral.views.prompt import inline_sections
from coral.views.prompt_context import scale_of
from coral.views.reasons import reason_data, refusal
from coral.views.report import Report
from workspace import hub
from workspace.history import snapshot
from workspace.intake import take_in
from workspace.layout import Layout
from workspace.owner import open_knowledge
from workspace.packs import Packs
from workspace.pins import restore_seed
from workspace.seal import Level

REASON_LENGTH = 200  # characters, in a line of the timeline
LAST_SECONDS = 10.0  # for what the threads have yet to do at the end


class Performer:
    def __init__(
        self,
        run_context: RunContext,
        launches: Launches,
        starter: Starter,
        heartbeat_files: HeartbeatFiles,
        report: Report,
        ledger: Ledger,
        pool: WorkerPool,
        queue: EventQueue,
    ) -> None:
        self._context = run_context
        self._layout = run_context.layout
        self._launches = launches
        self._starter = starter
        self._heartbeat_files = heartbeat_files
        self._report = report
        self._ledger = ledger
        self._pool = pool
        self._queue = queue
        self._store = Store(run_context.layout.attempts)
        self._hub_config = hub.settings(self._layout.hub, self._layout.hub_config)
        self._packs = Packs(self._layout.hub, self._layout.hub_packs)
        self._task_files = TaskFiles(self._layout, run_context.config.folder)
        self._index = IndexFeed(run_context.layout.attempts, pool)
        self._background = BackgroundActions(pool, queue)
        self._snapshot: Future[object] | None = None
        self._cleanups: dict[int, list[Future[object]]] = {}  # of grades that were lost, by their numbers
        self._published: list[Attempt] = []
        # What could not be written, until `WriteAgain`, and how often that failed.
        self._unwritten: list[tuple[do.Action, int]] = []

    @property
    def task_digests(self) -> dict[str, str]:
        """The hashes of the files of the run's task, by their paths in its folder `private`."""
        return self._task_files.digests

    def perform(self, actions: Iterable[do.Action], fleet: Fleet, now: on.Moment) -> None:
        for action in actions:
            self._try(action, fleet, now)
        self._queue.put(*self._starter.record_and_release())
        if self._published:
            self._clean_up()
            self._starter.prestart_interpreter(fleet.run.next_number, slots_of(fleet.run, self._context.rules))

    def take_over(self, fleet: Fleet) -> None:
        """Finish what an earlier supervisor was killed in the midst of, after it had published an attempt."""
        self._pool.submit(checkout.end_published, self._layout, fleet.run.next_number, frozenset(fleet.pending))

    def close(self) -> None:
        """End what the threads are at, and keep the history of the notes that were written since the last snapshot."""
        self._pool.submit(self._keep_knowledge, "at the end")
        self._background.close(LAST_SECONDS)
        self._starter.close()

    def _try(self, action: do.Action, fleet: Fleet, now: on.Moment, tries: int = 1) -> None:
        """`tries`: 1 for the first try, one more for each further one."""
        try:
            self._do(action, fleet, now)
        except Exception as error:  # noqa: BLE001 - the quarantine of one item in the loop
            for event in self._queue.put_failure(action, error, tries):
                if isinstance(event, on.SpawnFailed):
                    self._starter.cancel(event.who)
                elif isinstance(event, on.WriteFailed):
                    self._unwritten.append((action, tries))

    def _do(self, action: do.Action, fleet: Fleet, now: on.Moment) -> None:  # noqa: C901 - one arm per action
        match action:
            case do.TakeIn(number=number):
                self._background.run_later(action, partial(self._take_in, action, fleet.run.epoch), of_grade(number))
                self._starter.prestart_interpreter(number, slots_of(fleet.run, self._context.rules))
            case do.CheckOut(number=number):
                checking_out = partial(self._check_out, action, self._cleanups.pop(number, []))
                self._background.run_later(action, checking_out, of_grade(number))
            case do.ScanEdits():
                self._background.run_later(action, partial(self._scan, action))
            case do.RestoreRecords():
                restoring = partial(restore, self._store, self._ledger, self._index.add, action)
                self._background.run_later(action, restoring)
            case do.CleanUpGrade(number=number, launch=launch, whole=whole):
                cleanup = self._pool.submit(checkout.clean_up, self._layout, number, launch, whole)
                self._cleanups.setdefault(number, []).append(cleanup)
            case do.Accept() | do.Refuse() | do.Discard():
                self._answer_submission(action)
            case do.Answer(sender=sender, id=id, ok=ok, message=message, hint=hint):
                answer_request(self._layout, sender, id, {"ok": ok, "message": message, "hint": hint})
            case do.Publish():
                self._publish(action, fleet, now)
                self._starter.end_interpreter(action.attempt.number)
            case do.StartGrader() | do.Spawn() | do.StartJob() | do.SetMember():
                self._start(action, fleet, now)
            case do.PrepareAgent():
                self._background.run_later(action, partial(prepare, self._context, action))
            case do.Interrupt() | do.Terminate() | do.Kill():
                self._signal(action, now)
            case do.ShowHeartbeats(owner=owner):
                self._heartbeat_files.write(fleet, owner, now.run_time)
            case do.ShowHoldouts(graded=graded):
                self._report.holdouts(fleet)
                if graded is not None:
                    self._pool.submit(checkout.remove_checkouts, self._layout, graded)
            case do.ShowJob():
                self._report.job_ended(now, action)
            case do.LogEvent():
                self._report.log(now, action)
            case do.Finish():
                self._report.finish(now, action)
            case do.Notify():
                self._report.alert(now, action)
                self._queue.put(on.Notified(id=action.id))
            case do.WriteAgain():
                again, self._unwritten = self._unwritten, []
                for unwritten, tries in again:
                    self._try(unwritten, fleet, now, tries + 1)
            case _:
                assert_never(action)

    def _start(
        self, action: do.StartGrader | do.Spawn | do.StartJob | do.SetMember, fleet: Fleet, now: on.Moment
    ) -> None:
        match action:
            case do.StartGrader():
                self._starter.start_grader(action, now)
            case do.Spawn():
                self._starter.start_agent(action, fleet, now)
            case do.StartJob():
                self._starter.start_job(action, now)
            case do.SetMember():
                self._starter.set_member(action)

    def _answer_submission(self, action: do.Accept | do.Refuse | do.Discard) -> None:
        match action:
            case do.Accept(number=number):
                self._store.reply(action.agent, action.submission, {"attempt": number})
            case do.Refuse(reason=reason):
                text, hint = refusal(reason)
                reply: dict[str, object] = {"refused": text, "hint": hint, "reason": reason_data(reason)}
                self._store.reply(action.agent, action.submission, reply)
        self._store.clear(action.agent, action.submission)

    def _publish(self, action: do.Publish, fleet: Fleet, now: on.Moment) -> None:
        attempt = action.attempt
        # An answer to the submission that could not be written before would hide this one.
        self._unwritten = [write for write in self._unwritten if not _accepts(write[0], attempt.number)]
        self._ledger.add(attempt)
        if aside := self._store.publish(attempt):
            # Only the supervisor writes records: what somebody else put there makes way, and is kept to be examined.
            item = f"a record of #{attempt.number} that is not ours"
            self._queue.put(on.Broken(item=item, reason=f"it is kept as {aside.name}"))
        self._ledger.set_witnesses({attempt.number: self._store.witness(attempt.number)})
        self._index.add(attempt)
        self._context.results.add(attempt)
        if attempt.submission:
            inline = action.inline and inline_sections(self._context, fleet, attempt.agent, action.inline, now.run_time)
            reply: dict[str, object] = {"attempt": attempt.number, "published": True}
            reply |= {"heartbeats": list(action.heartbeats), "inline": inline, "launch": action.launch}
            reply["scale"] = scale_of(self._context, fleet, attempt.agent).data()
            self._store.reply(attempt.agent, attempt.submission, reply)
        score = "" if attempt.score is None else f" {attempt.score:.10g}"
        proves = f" (#{attempt.of})" if attempt.kind is Kind.CONFIRM and attempt.verdict is Verdict.NEW_BEST else ""
        failure = f": {one_line(attempt.reason, REASON_LENGTH)}" if attempt.score is None and attempt.reason else ""
        text = f"{attempt.verdict}{proves}{score}{failure}: {attempt.title}"
        if attempt.kind is Kind.BASELINE:
            text = f"{attempt.title}{score}"
        is_best = attempt.verdict is Verdict.NEW_BEST or None
        self._report.write_line(now, "published", text, attempt.agent, attempt=attempt.number, is_best=is_best)
        self._queue.put(on.Published(number=attempt.number))
        self._published.append(attempt)

    def _clean_up(self) -> None:
        """Remove checkouts and old replies of the attempts just published, and commit the notes to their history: in
        threads, after all other actions, so that the git processes delay no start and no signal."""
        published, self._published = self._published, []
        for attempt in published:
            self._cleanups.pop(attempt.number, None)
            self._pool.submit(checkout.end_grade, self._layout, attempt.number)
            if attempt.submission:
                self._pool.submit(self._store.forget_replies, attempt.agent)
            if self._snapshot is None or self._snapshot.done():
                self._snapshot = self._pool.submit(self._keep_knowledge, f"after attempt #{attempt.number}")

    # In worker threads.

    def _keep_knowledge(self, text: str) -> None:
        """Keep the shared knowledge in its history; first see to it that all agents can read it."""
        if self._context.level is Level.USER and self._context.config.workspace.share:
            open_knowledge(self._layout)
        snapshot(self._layout.shared, self._layout.history, text)

    def _take_in(self, action: do.TakeIn, epoch: int) -> Iterator[on.Event]:
        yield from self._restore_hub()
        clone = self._layout.clone(action.agent)
        taken = take_in(self._layout.hub, clone, action.commit, action.number)
        first = self._ledger.duplicate_of(taken.tree, action.kind is Kind.TUNE, epoch)
        yield on.TakenIn(
            number=action.number, commit=taken.commit, tree=taken.tree, parent=taken.parent,
            seal=Level.NONE if is_placed(self._context, action.agent) else self._context.level,
            duplicate=None if first is None or first.score is None else Scored(first.number, first.score),
            channel=OPEN if first is None else first.channel,
            built_on=self._ledger.built_on(taken.parent, epoch),
        )  # fmt: skip

    def _check_out(self, action: do.CheckOut, cleanups: list[Future[object]]) -> Iterator[on.Event]:
        """`cleanups`: of earlier launches of this grade, in the same folder."""
        wait(cleanups)
        yield from self._restore_hub()
        for name, damage in self._task_files.restore():
            yield on.Restored(item=f"private/{name}", found=damage, source="the run's start")
        checkout.prepare_grade(self._layout, self._context.config, action, self._context.venv)
        yield on.CheckedOut(number=action.number, launch=action.launch)

    def _restore_hub(self) -> Iterator[on.Event]:
        for name in hub.restore_settings(self._layout.hub, self._hub_config):
            yield on.Restored(item=f"the hub's {name}", found="was changed", source="the run's start")
        for name, damage, source in self._packs.restore():
            yield on.Restored(item=f"the hub's {name}", found=damage, source=source)
        if restore_seed(self._layout.hub, self._context.rules.seed_commit):
            yield on.Restored(item="the hub's reference of the seed", found="was changed", source="the run's start")

    def _scan(self, action: do.ScanEdits) -> Iterator[on.Event]:
        edited = last_edit(self._layout.clone(action.agent))
        yield on.EditsScanned(agent=action.agent, launch=action.launch, edited=edited)

    # In the loop's thread.

    def _signal(self, action: do.Interrupt | do.Terminate | do.Kill, now: on.Moment) -> None:
        launch = self._launches.find(action.who, action.launch)
        if launch is None:
            self._background.cancel(action.who)  # its commit is being checked out
            return
        match action:
            case do.Interrupt():
                process.interrupt(launch.identity)
                if job_in(action.who) is None:  # of a job, the timeline says why
                    self._report.write_line(now, "interrupted", f"launch {action.launch}", action.who)
            case do.Terminate():
                self._launches.terminate(launch)
            case do.Kill():
                self._launches.kill(launch)


def _accepts(action: do.Action, number: int) -> bool:
    return isinstance(action, do.Accept) and action.number == number


def answer_request(layout: Layout, sender: str, id: str, data: Mapping[str, object]) -> None:
    path = layout.replies_to(sender) / f"{id}.json"
    try:
        write_json(path, data, durable=False, new=True)  # no rename in a watched folder, see `Store.submit`
    except FileExistsError:
        write_json(path, data, durable=False)
    (layout.requests_of(sender) / f"{id}.json").unlink(missing_ok=True)
