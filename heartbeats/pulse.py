"""Signs of life of long work, written by a thread of their own. Standard library only.

    with Pulse("train", total=7, to="train.beats") as pulse:
        for fold in range(7):
            pulse.update(phase="fold", step=fold + 1, message=f"fold {fold + 1} of 7")

An update only notes what is new, so it may be called as often as the work likes. The thread writes a beat when
something has changed, a few times a second at most, and otherwise at least every third of the ttl. Whatever goes wrong
with beats or checkpoints is logged once and kept in `problem`; it is never raised into the work.
"""

import contextlib
import functools
import inspect
import json
import logging
import math
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar, cast

from attempts.files import read_bytes, sync_folder
from heartbeats.beat import Beat, Status, to_dict
from heartbeats.beat_writer import BeatWriter, Place, writer_to
from heartbeats.interval import ALONE

TTL = 60.0
QUICK, SLOW = 0.2, 2.0  # seconds between beats: in the beginning and after a new phase, later while somebody watches
LOOK = 1.0  # seconds between looks whether somebody asked the work to stop
END_SECONDS = 2.0  # for the last beat, where its reader is slow
CHECKPOINTS = ".pulse"
CHECKPOINT_LIMIT = 64 << 20  # bytes

P = ParamSpec("P")
R = TypeVar("R")

log = logging.getLogger("heartbeats")


class Pulse:
    """Signs of life of one piece of work, from `with` to its end: success, error or cancelled.

    `name`: unique among what runs at once in a folder. `total`: how many steps there are. `to`: a file, a socket
    (`*.sock`) on which `coral watch` listens, or a function that is given each beat as a dict; otherwise the place that
    $CORAL_BEATS names, as in a run of Coral; otherwise nowhere. `ttl`: after so many seconds without a beat it is taken
    for dead. `checkpoint`: the file of its checkpoint (default: .pulse/NAME.json in the folder in which it begins).

    Each process opens one of its own: in a child that was forked meanwhile, an open one does nothing.
    """

    def __init__(
        self,
        name: str,
        total: float | None = None,
        *,
        to: Place | None = None,
        ttl: float = TTL,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        if not ttl > 0:
            raise ValueError(f"ttl: expected seconds above 0, got {ttl!r}")
        self.name, self.total, self.ttl = name, total, ttl
        self.problem = ""
        self._to, self._checkpoint = to, checkpoint
        self._pid, self._depth = 0, 0
        self._guard = threading.Lock()
        self._cancelled = False
        self._path = Path(checkpoint or Path(CHECKPOINTS, f"{re.sub(r'[^A-Za-z0-9._-]+', '-', name)[:80]}.json"))
        self._clear()

    def __reduce__(self) -> tuple[Callable[[], "Pulse"], tuple[()]]:
        """Make a pickled pulse a new one in the other process: with the same name and place, and not begun."""
        return functools.partial(
            Pulse, self.name, self.total, to=self._to, ttl=self.ttl, checkpoint=self._checkpoint
        ), ()

    def _clear(self) -> None:
        self._phase, self._message = "", ""
        self._step: float | None = None
        self._share: float | None = None
        self._status, self._changed = Status.RUNNING, False
        self._wake, self._over = threading.Event(), threading.Event()
        self._session = f"{os.getpid():x}-{time.time_ns():x}"

    # What the work says.

    def update(
        self,
        step: float | None = None,
        *,
        phase: str | None = None,
        message: str | None = None,
        progress: float | None = None,
    ) -> None:
        """Note what is going on. `progress` is from 0 to 1; without it, it is `step` of the total. What is not given
        stays as it was. Costs under a microsecond or two, and never blocks."""
        if step is not None:
            self._step, self._share = step, None
        if progress is not None:
            self._share = progress
        if message is not None:
            self._message = message
        if phase is not None:
            self._phase = phase
        if not self._changed:
            self._changed = True
            if self._pid == os.getpid():
                self._wake.set()

    def checkpoint(self, data: object) -> bool:
        """Keep `data`, which JSON can hold, as the checkpoint; it is on the disk, whole, before this returns. Returns
        False where that was not possible: then the one before is still there, and `problem` says why."""
        try:
            text = json.dumps(data)
            if self._checkpoint is None and not self._path.parent.exists():
                # `git add` and `coral eval` are to leave the folder out.
                _replace(self._path.with_name(".gitignore"), "*\n")
            _replace(self._path, text)
        except (OSError, ValueError, TypeError, RecursionError) as error:
            self._report("keep the checkpoint", error)
            return False
        return True

    @property
    def last_checkpoint(self) -> object:
        """The data of the last checkpoint of this name, of an earlier process too; None where there is none. A success
        removes it: the next start is a new one."""
        try:
            return cast(object, json.loads(read_bytes(self._path, CHECKPOINT_LIMIT)))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            self._report("read the checkpoint", error)
            return None

    @property
    def cancelled(self) -> bool:
        """Whether somebody asked the work to stop: ask between steps, and return."""
        return self._cancelled

    def cancel(self) -> None:
        """Ask the work to stop, as `coral watch` does from outside."""
        self._cancelled = True

    # Its beginning and its end.

    def __enter__(self) -> "Pulse":
        if self._pid != os.getpid():  # a child that was forked begins its own
            self._guard, self._depth = threading.Lock(), 0
        with self._guard:
            self._depth += 1
            if self._depth == 1:
                self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pid != os.getpid():
            return
        with self._guard:
            self._depth -= 1
            if self._depth == 0:
                self._end(error)

    def task(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function, `async` or not: each call is the pulse from its beginning to its end. Within a pulse
        that is open, a call is a phase of it with the function's name."""

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: P.args, **named: P.kwargs) -> object:
                with self._task(function.__name__):
                    return cast(object, await function(*args, **named))

            return cast(Callable[P, R], call_async)

        @functools.wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> R:
            with self._task(function.__name__):
                return function(*args, **named)

        return call

    @contextlib.contextmanager
    def _task(self, name: str) -> Iterator[None]:
        with self:
            self.update(phase=name)
            yield

    def _begin(self) -> None:
        self._clear()
        self._cancelled, self._pid = False, os.getpid()
        if not self._path.is_absolute():
            self._path = Path.cwd() / self._path
        self._thread = threading.Thread(
            target=self._write_beats,
            args=(writer_to(self._to, self._session), self._over),
            name=f"pulse {self.name}",
            daemon=True,
        )
        try:
            self._thread.start()
        except RuntimeError as error:  # no more threads
            self._report("write beats", error)

    def _end(self, error: BaseException | None) -> None:
        self._status, text = _ending(error, self._cancelled)
        self._message = text or self._message
        self._over.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(END_SECONDS)
        if self._status is Status.SUCCESS:
            with contextlib.suppress(OSError):
                self._path.unlink()

    # The thread.

    def _write_beats(self, writer: BeatWriter, over: threading.Event) -> None:
        wait, written_at, phase, longest = QUICK, float("-inf"), self._phase, self.ttl / 3
        while True:
            is_last = over.is_set()
            self._wake.clear()
            if is_last or self._changed or time.monotonic() - written_at >= longest:
                self._changed, written_at = False, time.monotonic()
                wait, phase = (min(1.5 * wait, ALONE), phase) if self._phase == phase else (QUICK, self._phase)
                self._write(writer)
            if is_last:
                break
            self._rest(writer, over, written_at, min(wait, longest / 2))
            self._wake.wait(max(min(LOOK, written_at + longest - time.monotonic()), 0.0))
        writer.close()

    def _rest(self, writer: BeatWriter, over: threading.Event, written_at: float, wait: float) -> None:
        """Wait for `wait` seconds after a beat, at most SLOW while somebody watches. Checks every LOOK seconds whether
        somebody does, and whether somebody has asked the work to stop."""
        while True:
            self._cancelled = self._cancelled or writer.is_cancelled()
            left = written_at + (min(wait, SLOW) if writer.is_watched() else wait) - time.monotonic()
            if over.wait(max(min(left, LOOK), 0.0)) or left <= LOOK:
                return

    def _write(self, writer: BeatWriter) -> None:
        try:
            writer.write(to_dict(self._beat()))
        except Exception as error:  # noqa: BLE001 - texts and numbers are the work's objects, and may raise anything
            self._report("write a beat", error)

    def _beat(self) -> Beat:
        attempt = os.environ.get("CORAL_ATTEMPT")
        return Beat(
            run=Path(os.environ.get("CORAL_RUN", "")).name,
            agent=f"#{attempt}" if attempt else os.environ.get("CORAL_AGENT", ""),
            launch=1,
            status=self._status,
            phase=str(self._phase),
            progress=self._progress(),
            message=str(self._message),
            timestamp=datetime.now(UTC).isoformat(timespec="milliseconds"),
            ttl=self.ttl,
            session=self._session,
            task=self.name,
        )

    def _progress(self) -> float | None:
        share = self._share
        if share is None and self._step is not None and self.total:
            share = self._step / self.total
        return None if share is None or math.isnan(share) else round(min(max(float(share), 0.0), 1.0), 4)

    def _report(self, what: str, error: Exception) -> None:
        problem = f"cannot {what}: {error}"
        if problem != self.problem:
            self.problem = problem
            log.warning("pulse %s: %s", self.name, problem)


def _replace(path: Path, text: str) -> None:
    """Write a text durably under this name, whole or not at all. OSError if that is not possible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_native_id()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def _ending(error: BaseException | None, cancelled: bool) -> tuple[Status, str]:
    """Return the status with which the work ended, and a message that replaces its last one, or ""."""
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return (Status.CANCELLED if cancelled else Status.SUCCESS), ""
    if not isinstance(error, Exception | SystemExit):  # KeyboardInterrupt, or asyncio's CancelledError
        return Status.CANCELLED, type(error).__name__
    return Status.ERROR, f"{type(error).__name__}: {error}"
