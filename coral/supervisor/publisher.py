"""Publishes a verdict: in the ledger, the record, the standings, the reply to whoever waits, and the timeline.

Each step may be done again with the same result; the attempt is published once all are done.
"""

from concurrent.futures import Executor, Future

from attempts.record import Attempt
from attempts.store import Store
from coral.fleet import actions as do
from coral.fleet import events as on
from coral.fleet.run_state import Fleet
from coral.grading import checkout
from coral.records.index_feed import IndexFeed
from coral.records.ledger import Ledger
from coral.supervisor.context import RunContext
from coral.supervisor.event_queue import EventQueue
from coral.views.prompt import inline_sections
from coral.views.report import Report
from workspace.history import snapshot


class Publisher:
    def __init__(
        self,
        run_context: RunContext,
        store: Store,
        ledger: Ledger,
        index: IndexFeed,
        report: Report,
        queue: EventQueue,
        pool: Executor,
    ) -> None:
        self._context = run_context
        self._store = store
        self._ledger = ledger
        self._index = index
        self._report = report
        self._queue = queue
        self._pool = pool
        self._snapshot: Future[object] | None = None
        self._published: list[Attempt] = []

    def publish(self, action: do.Publish, fleet: Fleet, now: on.Moment) -> None:
        attempt = action.attempt
        self._ledger.add(attempt)
        if aside := self._store.publish(attempt):
            # Only the supervisor writes records: what somebody else put there makes way, and is kept to be examined.
            item = f"a record of #{attempt.number} that is not ours"
            self._queue.put(on.Broken(item=item, reason=f"it is kept as {aside.name}"))
        self._ledger.set_witnesses({attempt.number: self._store.witness(attempt.number)})
        self._index.add(attempt)
        against = self._context.standings.last_improvement(attempt.agent)
        self._context.standings.add(attempt)
        if attempt.submission:
            printed = (
                inline_sections(self._context, fleet, attempt.agent, action.inline, now.run_time)
                if action.inline
                else []
            )
            # Published once more after a restart, it may be the last improvement itself.
            other = None if against == attempt.number else against
            reply: dict[str, object] = {"attempt": attempt.number, "published": True, "against": other}
            reply |= {"heartbeats": list(action.heartbeats), "inline": printed, "launch": action.launch}
            self._store.reply(attempt.agent, attempt.submission, reply)
        score = "" if attempt.score is None else f" {attempt.score:.10g}"
        text = f"{attempt.verdict}{score}: {attempt.title}"
        self._report.note(now, "published", text, attempt.agent, attempt=attempt.number)
        self._queue.put(on.Published(number=attempt.number))
        self._published.append(attempt)

    def clean_up(self) -> bool:
        """Remove what is of no more use of the attempts published since, and keep the history of the notes: in threads,
        after all other actions, so that the git processes delay no start and no signal. Whether there were any."""
        published, self._published = self._published, []
        for attempt in published:
            self._clean_up(attempt)
        return bool(published)

    def _clean_up(self, attempt: Attempt) -> None:
        layout, number = self._context.layout, attempt.number
        self._pool.submit(checkout.remove_checkouts, layout, number)
        if attempt.submission:
            self._pool.submit(self._store.forget_replies, attempt.agent)
        if self._snapshot is None or self._snapshot.done():
            self._snapshot = self._pool.submit(snapshot, layout.shared, f"after attempt #{number}")
