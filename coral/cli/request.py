"""Asking the supervisor for something: a file in the sender's folder of requests, and its answer beside it.

The request stays when nobody answers: the supervisor reads it when it next looks, or when the run is resumed.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attempts.files import entries, is_plain_file, write_json
from attempts.record import SUBMISSION_ID
from attempts.store import Store
from coral.cli import loose
from coral.cli.loose import Loose
from coral.errors import CoralError
from workspace.layout import OPERATOR, Layout

PATIENCE = 10.0  # seconds; twice the default poll of the supervisor


def send(layout: Layout, sender: str, request: Mapping[str, object]) -> str:
    """Write a request down; its id. Later ones have later ids, whatever the wall clock does, and are done later."""
    places = (layout.requests_of(sender), layout.replies_to(sender))
    while True:
        name = Store.next_id(max((each for place in places for each in _ids(place)), default=""))
        try:
            write_json(places[0] / f"{name}.json", request, durable=True, new=True)
        except FileExistsError:
            continue  # another one, this very moment
        except PermissionError as error:
            raise CoralError(f"cannot write in {places[0]}: {error.strerror}", "is it your run?") from None
        return name


def _ids(folder: Path) -> Iterator[str]:
    return (path.stem for path in entries(folder, is_plain_file) if SUBMISSION_ID.fullmatch(path.stem))


def take_back(layout: Layout, sender: str, *types: str) -> None:
    """Requests of these types that nobody read: asked of a supervisor that is gone, they would meet the next one."""
    for path in layout.requests_of(sender).glob("*.json"):
        if loose.read(path).text("type") in types:
            path.unlink(missing_ok=True)


def answer(layout: Layout, sender: str, name: str, seconds: float) -> Loose | None:
    """The answer to a request, or None when there is none in that time."""
    path = layout.replies_to(sender) / f"{name}.json"
    for _ in pauses(seconds):
        if found := loose.read(path):
            return found
    return None


def ask(layout: Layout, sender: str, requests: Sequence[Mapping[str, object]]) -> int:
    """Send requests, wait for the answers and say them, each once; 0 when all were granted or none was answered."""
    names = [send(layout, sender, request) for request in requests]
    asleep = unsupervised(layout)
    answers = [answer(layout, sender, name, 0.0 if asleep else PATIENCE) for name in names]
    if None in answers and asleep:
        print("asked; nobody supervises this run: it takes effect when the run is resumed")
    elif None in answers:
        print("asked; there is no answer yet: it takes effect when the supervisor reads it")
    refused = False
    said = [(bool(each.data.get("ok")), each.text("message"), each.text("hint")) for each in answers if each]
    for ok, message, hint in dict.fromkeys(said):
        refused = refused or not ok
        print(message if ok else f"coral: {message}", file=sys.stdout if ok else sys.stderr)
        if hint:
            print(f"  {hint}", file=sys.stdout if ok else sys.stderr)
    return 1 if refused else 0


def unsupervised(layout: Layout) -> bool:
    """Whether it is certain that nobody supervises the run. A sealed agent cannot tell: then it is not."""
    if not os.access(layout.private, os.R_OK | os.X_OK):
        return False
    from coral.lock import holder

    return holder(layout.lock) is None


def as_operator(what: str) -> str:
    """The operator's name as a sender; refused to a program that runs as an agent."""
    agent = os.environ.get("CORAL_AGENT")
    if agent:
        raise CoralError(f"cannot {what}: that is for the operator, and you are {agent}", "ask with an ALERT: line")
    return OPERATOR


def pauses(seconds: float) -> Iterator[float]:
    """Times to look again, as the seconds that have passed: at once, and at the latest after `seconds`.

    The longer it took already, the later it may be seen: by a twentieth of that, between 5 and 50 ms. After 10 s once
    a second: a long wait costs nothing.
    """
    start = time.monotonic()
    while True:
        passed = time.monotonic() - start
        yield passed
        if passed >= seconds:
            return
        pause = min(max(0.005, passed / 20), 0.05) if passed < 10 else 1.0
        time.sleep(min(pause, max(0.0, seconds - passed)))
