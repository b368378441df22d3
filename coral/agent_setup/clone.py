"""An agent whose repository is gone or spoiled gets another one, in a thread: the loop waits for no git.

Until it is there the agent is not started, and says why: it waits as after any start that failed.
"""

from concurrent.futures import Future

from coral.agent_setup.command import furnish, settle_again
from coral.supervisor.context import RunContext
from coral.supervisor.workers import WorkerPool
from workspace.hub import is_whole


class CloneRepair:
    def __init__(self, run_context: RunContext, pool: WorkerPool) -> None:
        self._context = run_context
        self._pool = pool
        self._under_way: dict[str, Future[None]] = {}

    def furnish(self, agent: str) -> None:
        """Make its clone ready for a launch. OSError where it is no repository: then another one is under way, and
        why the one before failed is told."""
        future = self._under_way.get(agent)
        if future is not None and not future.done():
            raise OSError("its repository is still being made again")
        self._under_way.pop(agent, None)
        if is_whole(self._context.layout.clone(agent)):
            furnish(self._context, agent)
            return
        self._under_way[agent] = self._pool.submit(settle_again, self._context, agent)
        failed = future.exception() if future is not None else None
        tried = f", which failed before: {failed}" if failed is not None else ""
        raise OSError(f"its repository was removed or damaged; it is made again{tried}")
