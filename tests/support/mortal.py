"""A supervisor that dies where it is told. Run as a program: it has everything loaded, and forks one after the other.

A line on standard input is one life, a JSON object: the run's folder `root`; `overrides` of its task; `at`, the places
it dies at when it first comes to one of them; `nth`, or at whatever place it comes to as the n-th; and how many
`seconds` after it has begun to decide (`early`: after it was born) it gets kill -9 in any case; `quiet` seconds are
what it takes for a minute. When it has ended, a line tells the place (empty if it was none of ours) and the wait
status.
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

# Every place between "it is written down" and "it is done", and some in the middle of doing it.
ELSEWHERE = {
    "StartJob",
    "ShowJob",
    "ShowHoldouts",
    "ScanEdits",
    "CleanUpGrade",
    "RestoreRecords",
    "WriteAgain",
}  # or no loss
ACTIONS = tuple(action.__name__ for action in get_args(actions.Action) if action.__name__ not in ELSEWHERE)
STEPS = ("record", "record_started", "release", "start", "publish", "reply", "clear", "take_in", "prepare_grade")
PLACES = tuple(f"{side} {what}" for what in (*ACTIONS, *STEPS) for side in ("before", "after"))
BROKEN = 70
AT_WORK = "at work"


def arm(at: Collection[str], nth: int, tell: Callable[[str], None]) -> None:
    """Let this process die there: wrapped around what the product does, which knows nothing of it."""
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
    """The life of one supervisor, in the process of its own that it has become."""
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
    """A new supervisor: its pid, and the pipe by which it tells where it is."""
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
    """See the supervisor end, and to it that it does."""
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
        _shipped().get_template(path.name)  # compiled once, and not in every life
    gc.freeze()  # no life goes through what it was born with
    for line in sys.stdin:
        while signal.sigtimedwait({signal.SIGCHLD}, 0):
            pass
        print(json.dumps(watch(*fork(line), json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
