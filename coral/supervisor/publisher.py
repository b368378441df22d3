"""What a verdict leads to outside: the ledger, the record, the standings, the answer to whoever waits, the timeline.

Each part may be done again and comes to the same; only when all are done it is published.
"""

from collections.abc import Callable
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
from coral.views.prompt import inline
from coral.views.report import Report
from workspace.knowledge import snapshot

Tell = Callable[[str, str], None]


class Publisher:
    def __init__(
        self, run_context: RunContext, store: Store, ledger: Ledger, feed: IndexFeed, report: Report, tell: Tell
    ) -> None:
        """`tell` is told, once, of what was found in a record's place, and what became of it."""
        self._context = run_context
        self._store = store
        self._ledger = ledger
        self._feed = feed
        self._report = report
        self._tell = tell
        self._snapshot: Future[object] | None = None

    def publish(self, action: do.Publish, fleet: Fleet, now: on.Moment) -> None:
        attempt = action.attempt
        self._ledger.enter(attempt)
        if aside := self._store.publish(attempt):
            # Records are ours: whoever put another one there, it makes way, and is kept to be looked at.
            self._tell(f"a record of #{attempt.number} that is not ours", f"it is kept as {aside.name}")
        self._ledger.set_witnesses({attempt.number: self._store.witness(attempt.number)})
        self._feed.add(attempt)
        against = self._context.standings.last_improvement(attempt.agent)
        self._context.standings.add(attempt)
        if attempt.submission:
            printed = inline(self._context, fleet, attempt.agent, action.inline, now.run_time) if action.inline else []
            # Published once more after a restart, it may be the last improvement itself.
            other = None if against == attempt.number else against
            reply: dict[str, object] = {"attempt": attempt.number, "published": True, "against": other}
            reply |= {"heartbeats": list(action.heartbeats), "inline": printed, "launch": _launch(fleet, attempt, now)}
            self._store.reply(attempt.agent, attempt.submission, reply)
        score = "" if attempt.score is None else f" {attempt.score:.10g}"
        text = f"{attempt.verdict}{score}: {attempt.title}"
        self._report.note(now, "published", text, attempt.agent, attempt=attempt.number)

    def tidy(self, attempt: Attempt, pool: Executor) -> None:
        """What remains to be done behind it, when somebody has the time."""
        layout, number = self._context.layout, attempt.number
        pool.submit(checkout.tidy, layout, number)
        if attempt.submission:
            pool.submit(self._store.forget_replies, attempt.agent)
        if self._snapshot is None or self._snapshot.done():
            self._snapshot = pool.submit(snapshot, layout.shared, f"after attempt #{number}")


def _launch(fleet: Fleet, attempt: Attempt, now: on.Moment) -> int:
    """The launch of its agent that hears of it where it stays for what follows; one that starts in this very turn
    carries what follows itself."""
    agent = fleet.agents[attempt.agent]
    return agent.launch - (agent.spawned_at == now.run_time)
