"""Starts runs, follows them and stops them; each start and stop is a `coral` command in a process of its own.

A supervisor forks and handles signals, so it must not run in the process of a program that imports Coral.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from attempts.record import Attempt, Kind
from attempts.store import Store
from coral.api.run_data import RunData, open_run
from coral.errors import CoralError
from coral.reading.visibility import alone_in, may_see
from workspace.layout import Layout

LOOK_SECONDS = 0.2  # between two looks at a run
STOP_SECONDS = 120.0  # a stop takes less even where no agent reacts to a signal
_PENDING = 2  # the exit code of `coral stop` for a run that has not stopped in time


def run(
    task: str | Path,
    overrides: Mapping[str, object] | None = None,
    /,
    *,
    knowledge: Sequence[str | Path] = (),
    yes: bool = False,
    **sections: object,
) -> RunHandle:
    """Start a run of a task in the background, as `coral start TASK --detach` does: below the current directory.

    Settings by dotted key, `{"agents.count": 4}`, or by section, `agents={"count": 4}`. `knowledge`: runs or folders
    whose knowledge it begins with. `yes`: start it although it may cost more than `budget.ask_above`. What the command
    says on the way goes to stderr. CoralError, with its words, where it cannot start.
    """
    options = ["--detach", "--json", *(["--yes"] if yes else [])]
    options += [f"--knowledge={source}" for source in knowledge]
    settings = [f"{key}={value}" for key, value in _settings({**(overrides or {}), **sections})]
    started = _coral("start", *options, "--", str(task), *settings)
    return RunHandle(started["path"])


class RunHandle:
    """A run in the background. It goes on when this program ends, unless a `with` block ends first: that stops it.

    To iterate gives each attempt of an agent once, as it is published, until the run is over; not what the supervisor
    measures again.
    """

    def __init__(self, run: str | Path) -> None:
        """`run`: the run's folder, or its name as `coral.open_run` takes it; whoever started the run."""
        self._path = open_run(run).path

    def __repr__(self) -> str:
        return f"RunHandle({str(self.path)!r})"

    def __enter__(self) -> RunHandle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.run.is_running:
            self.stop("the program that started it has left it")

    def __iter__(self) -> Iterator[Attempt]:
        layout, seen = Layout(self.path), set[int]()
        store, only_agent = Store(layout.attempts), alone_in(layout)
        while True:
            is_over = not self.run.is_running  # before the list: so none is missed
            new = [number for number in store.numbers() if number not in seen]
            seen.update(new)
            found = [attempt for attempt in map(store.find, new) if attempt and may_see(only_agent, attempt)]
            yield from sorted(
                (attempt for attempt in found if attempt.kind in (Kind.REAL, Kind.TUNE)),
                key=lambda attempt: attempt.order,
            )
            if is_over:
                return
            time.sleep(LOOK_SECONDS)

    @property
    def path(self) -> Path:
        """Its folder."""
        return self._path

    @property
    def run(self) -> RunData:
        """The run as it is now."""
        return open_run(self.path)

    def wait(self, timeout: float | None = None) -> RunData:
        """Wait until nobody supervises the run any more, at most `timeout` seconds; TimeoutError after that. Its
        `state` then says whether it has stopped, and `reason` why."""
        end = None if timeout is None else time.monotonic() + timeout
        while (found := self.run).is_running:
            left = LOOK_SECONDS if end is None else end - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"the run {self.path.name} is not over after {timeout:g} s")
            time.sleep(min(LOOK_SECONDS, left))
        return found

    def stop(self, reason: str = "", timeout: float = STOP_SECONDS) -> RunData:
        """End the run and everything that it started; nothing is done to one that is over. TimeoutError where that
        takes longer than `timeout` seconds."""
        options = [f"--run={self.path}", f"--timeout={timeout:g}", f"--reason={reason}", "--json"]
        if not _coral("stop", *options, allowed=(0, _PENDING))["stopped"]:
            raise TimeoutError(f"the run {self.path.name} has not stopped within {timeout:g} s")
        return self.run


def _settings(given: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield (dotted key, value as JSON) for each setting. JSON is also YAML, as the command expects. A mapping is
    flattened: each of its keys is appended to the dotted key."""
    for name, value in given.items():
        if isinstance(value, Mapping) and value:
            yield from _settings(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", json.dumps(value, default=_plain)


def _plain(value: Any) -> object:
    """Convert a number of numpy to a number of Python; anything else, such as a path, to its text."""
    return value.item() if hasattr(value, "item") else str(value)


def _coral(*words: str, allowed: Sequence[int] = (0,)) -> dict[str, Any]:
    """Run a `coral` command and return the JSON that it prints; copy its messages to stderr. CoralError if its exit
    code is not in `allowed`.

    An exception here, such as KeyboardInterrupt, first sends the command SIGTERM and waits for it to end.
    """
    # Without -P, packages in the current directory would come before ours.
    argv = [sys.executable, "-P", "-m", "coral", *words]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            out, err = child.communicate()
        except BaseException:
            child.terminate()
            child.communicate()  # wait for its end: Popen's own exit does not wait long after an interrupt
            raise
    messages = err.decode(errors="replace")
    if child.returncode not in allowed:
        raise _error(messages, words[0])
    sys.stderr.write(messages)
    printed: dict[str, Any] = json.loads(out)
    return printed


def _error(messages: str, command: str) -> CoralError:
    """Return the error with which a command ended, parsed from its stderr `messages`: the text after the last "coral:",
    whose last line is the hint."""
    message, _, hint = messages.rpartition("coral: ")[2].rstrip().rpartition("\n")
    if not message:
        message, hint = hint, ""
    return CoralError(message.strip() or f"cannot {command}: the command said nothing", hint.strip())
