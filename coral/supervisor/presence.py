"""Whether a run is still where it was begun: its folder, and the lock in it that keeps a second supervisor out."""

from collections.abc import Callable

from coral.fleet import events as on
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.supervisor.lock import Lock
from workspace.layout import Layout

GONE_SECONDS = 5.0  # for so long a folder may be away: a disk may come back
LOCK = "the lock that keeps a second supervisor out"


class RunFolderGuard:
    def __init__(self, layout: Layout, lock: Lock, stop: Callable[[RunEnd], None]) -> None:
        """`stop` is called once when the folder was taken away for good: nobody else could stop that run any more."""
        self._layout = layout
        self._lock = lock
        self._stop = stop
        self._missed: float | None = None

    def look(self, clock: float) -> list[on.Event]:
        """What was put back. `clock`: the run's, in seconds. CoralError when another one supervises the run by now."""
        if not is_gone(self._layout):
            self._missed = None
            return [on.Restored(item=LOCK, found="was removed", source="memory")] if self._lock.put_back() else []
        if self._missed is None:
            self._missed = clock
        elif clock - self._missed >= GONE_SECONDS:
            self._missed = float("inf")
            self._stop(RunEnd(RunEndKind.FOLDER_GONE))
        return []


def is_gone(layout: Layout) -> bool:
    """Whether the run was taken away from under us. A disk that does not answer is another matter."""
    try:
        layout.private.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
