"""How often long work writes a beat: often in the beginning and while somebody watches, else rarely.

A watcher touches a file beside the file of beats every few seconds; the writer looks at that file's time. So a look
costs one system call, a watcher need not sign off, and one that was killed is forgotten.
"""

import contextlib
import os
import time
from pathlib import Path

FIRST, WATCHED, ALONE = 1.0, 3.0, 15.0  # seconds between two beats
TOUCH_SECONDS = 3.0  # between two touches
BELIEVED_SECONDS = 10.0  # after a touch
LOOK_SECONDS = 1.0  # between two looks


def interval(seconds: float, *, is_watched: bool) -> float:
    """Return the seconds until the next beat of work that has gone on for `seconds`: a tenth of them, within bounds."""
    return min(max(FIRST, seconds / 10), WATCHED if is_watched else ALONE)


def watched_file(beats: Path) -> Path:
    """Return the file that a watcher of a file of beats touches."""
    return beats.with_name(f"{beats.name}.watched")


class Watcher:
    """Tells the writer of a file of beats that somebody watches it."""

    def __init__(self, beats: Path) -> None:
        self._path = watched_file(beats)
        self._touched_at = float("-inf")

    def touch(self) -> None:
        """Touch the file, at most every TOUCH_SECONDS. To be called again and again. If the file cannot be written, the
        writer does not learn that somebody watches."""
        if time.monotonic() - self._touched_at < TOUCH_SECONDS:
            return
        self._touched_at = time.monotonic()
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        with contextlib.suppress(OSError):
            handle = os.open(self._path, flags, 0o600)
            try:
                os.utime(handle)
            finally:
                os.close(handle)


class WatchedLook:
    """Finds out whether somebody watches a file of beats."""

    def __init__(self, beats: Path) -> None:
        self._path = watched_file(beats)
        self._looked_at = float("-inf")
        self._is_watched = False

    def is_watched(self) -> bool:
        """Return whether somebody watches. The answer may be LOOK_SECONDS old."""
        now = time.monotonic()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at, self._is_watched = now, False
            with contextlib.suppress(OSError):
                self._is_watched = abs(time.time() - self._path.stat().st_mtime) < BELIEVED_SECONDS
        return self._is_watched


class OwnInterval:
    """The interval of beats for this process. `beats`: the place of its pulses ($CORAL_BEATS), or ""."""

    def __init__(self, beats: str) -> None:
        self._look = WatchedLook(Path(beats)) if beats else None
        self._began = time.monotonic()

    def seconds(self) -> float:
        is_watched = self._look is not None and self._look.is_watched()
        return interval(time.monotonic() - self._began, is_watched=is_watched)
