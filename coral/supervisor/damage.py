"""Reads whether what only the supervisor writes is as it was left: the heartbeats in force, the journal, the records.

Agents run as the same user, and may write there. The journal restores itself; the rest is restored by actions.
"""

from collections.abc import Iterator
from concurrent.futures import Executor, Future

from attempts.store import Store
from coral.fleet import events as on
from coral.fleet.run_state import Fleet
from coral.journal import Journal
from coral.records.integrity import CheckResult, IntegrityCheck
from coral.records.ledger import Ledger
from coral.supervisor.context import RunContext
from coral.views.fleet_view import HeartbeatFiles


class DamageCheck:
    def __init__(
        self, run_context: RunContext, heartbeat_files: HeartbeatFiles, journal: Journal, ledger: Ledger, pool: Executor
    ) -> None:
        self._standings = run_context.standings
        self._heartbeat_files = heartbeat_files
        self._journal = journal
        self._records = IntegrityCheck(Store(run_context.layout.attempts), ledger)
        self._pool = pool
        self._look: Future[CheckResult] | None = None

    def read(self, fleet: Fleet) -> Iterator[on.Event]:
        """What was found. The records are compared in a worker thread; what that finds is returned by the next call."""
        yield from (on.HeartbeatsAltered(owner=owner) for owner in self._heartbeat_files.altered())
        yield from self._journal.repair()
        if self._look is not None and self._look.done():
            done, self._look = self._look, None
            yield from self._records.report(done.result(), fleet.run.next_number, fleet.pending)
        if self._look is None:
            leaders = [attempt.number for attempt in self._standings.top]
            self._look = self._pool.submit(self._records.check_next, leaders)

    def close(self) -> None:
        self._records.close()
