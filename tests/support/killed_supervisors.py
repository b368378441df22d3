"""Runs supervisors that die at given places: a program that imports everything once, and forks them one by one.

Each line on standard input starts a supervisor, as a JSON object. `root`: the run's folder; `overrides`: of its task;
`at`: places, of PLACES, at the first of which it dies; `nth`: it dies at the n-th place, whichever that is; `seconds`:
after so long it is killed in any case, counted from its first turn, or with `early` from the fork; `quiet`: replaces
`coral.journal.writer.QUIET_SECONDS`. After its end a line is printed: `place`, empty if it died at none, and `status`,
as os.waitpid returns it.
"""

import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, get_args

from attempts.store import Store
from coral.fleet import actions
from coral.grading import checkout
from coral.journal import Journal, writer
from coral.processes import process
from coral.processes.process import HeldChild
from coral.supervisor import perform
from coral.supervisor.lock import Lock
from coral.supervisor.loop import Supervisor, supervise
from coral.supervisor.perform import Performer
from heartbeats.render import PROMPTS, _shipped
from workspace.git import load
from workspace.layout import Layout

# Actions that are tested elsewhere, or beside which a death loses nothing.
ELSEWHERE = {
    "StartJob",
    "ShowJob",
    "ShowHoldouts",
    "ScanEdits",
    "CleanUpGrade",
    "RestoreRecords",
    "WriteAgain",
}
ACTIONS = tuple(action.__name__ for action in get_args(actions.Action) if action.__name__ not in ELSEWHERE)
STEPS = ("record", "record_started", "release", "start", "publish", "reply", "clear", "take_in", "prepare_grade")
# Each is between the write of a decision and the end of its actions, or within one.
PLACES = tuple(f"{side} {what}" for what in (*ACTIONS, *STEPS) for side in ("before", "after"))
BROKEN = 70
AT_WORK = "at work"


def arm(at: Collection[str], nth: int, tell: Callable[[str], None]) -> None:
    """Let this process die at one of the places: the functions there are wrapped. `tell`: called with the place."""
    passed = 0

    def here(place: str) -> None:
        nonlocal passed
        passed += 1
        if place in at or passed == nth:
            tell(place)
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(owner: Any, name: str) -> None:
        inner = getattr(owner, name)

        def wrapped(*arguments: Any, **named: Any) -> Any:
            what = type(arguments[1]).__name__ if owner is Performer else name
            here(f"before {what}")
            result = inner(*arguments, **named)
            here(f"after {what}")
            return result

        setattr(owner, name, wrapped)

    wrap(Performer, "_do")
    for owner, names in (
        (Journal, ("record", "record_started")),
        (HeldChild, ("release",)),
        (process, ("start",)),
        (Store, ("publish", "reply", "clear")),
        (perform, ("take_in",)),
        (checkout, ("prepare_grade",)),
    ):
        for name in names:
            wrap(owner, name)


def live(order: dict[str, Any], tell: Callable[[str], None]) -> int:
    """Supervise in this process, which was forked for it; returns the exit code."""
    os.setsid()
    layout = Layout(Path(order["root"]))
    log = os.open(layout.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for number, target in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
        os.dup2(target, number)
    os.chdir(layout.root)
    arm(order["at"], order["nth"], tell)
    writer.QUIET_SECONDS = order["quiet"]
    run = Supervisor.run

    def tell_and_run(manager: Supervisor, lock: Lock) -> str:
        tell(AT_WORK)
        return run(manager, lock)

    Supervisor.run = tell_and_run  # type: ignore[method-assign]
    return supervise(layout, tuple(order["overrides"]))


def fork(line: str) -> tuple[int, int]:
    """Fork a supervisor; returns its pid, and the pipe into which it writes AT_WORK and the place of its death."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    code = BROKEN
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        code = live(json.loads(line), lambda place: os.write(writing, place.encode()) and None)
    finally:
        if code == BROKEN:
            traceback.print_exc()
        os._exit(code)


def watch(pid: int, told: int, order: dict[str, Any]) -> dict[str, Any]:
    """Wait for the supervisor's end, which is forced after the seconds of its order; returns the line to print."""
    early = order["early"] or os.read(told, len(AT_WORK))
    ended = signal.sigtimedwait({signal.SIGCHLD}, order["seconds"]) if early else True
    if not ended:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(told, "rb") as file:
        return {"place": file.read().decode().removeprefix(AT_WORK), "status": status}


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    load()
    for path in PROMPTS.glob("*.j2"):
        _shipped().get_template(path.name)  # compiled once, and not by each supervisor
    gc.freeze()  # the collector of a forked process skips what is there by now
    for line in sys.stdin:
        while signal.sigtimedwait({signal.SIGCHLD}, 0):
            pass
        print(json.dumps(watch(*fork(line), json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
