"""Asking the supervisor for something: a file in the sender's folder of requests, and its answer beside it.

The request stays when nobody answers: the supervisor reads it when it next looks, or when the run is resumed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from attempts.files import entries, is_plain_file, write_json
from attempts.record import SUBMISSION_ID
from attempts.store import Store
from coral.cli.run_data import lenient_json
from coral.cli.run_data.lenient_json import LenientJson
from coral.errors import CoralError
from workspace.layout import OPERATOR, Layout

PATIENCE = 10.0  # seconds; twice the default poll of the supervisor
JSON_HELP = "for programs: run, request, answered, message, hint"


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
        if lenient_json.read(path).text("type") in types:
            path.unlink(missing_ok=True)


def answer(layout: Layout, sender: str, name: str, seconds: float) -> LenientJson | None:
    """The answer to a request, or None when there is none in that time."""
    path = layout.replies_to(sender) / f"{name}.json"
    for _ in pauses(seconds):
        if found := lenient_json.read(path):
            return found
    return None


def ask(layout: Layout, sender: str, request: Mapping[str, object], *, as_json: bool) -> int:
    """Send a request, wait for its answer and say it; 0 when it was granted or is not answered yet. CoralError when
    it was refused."""
    name = send(layout, sender, request)
    asleep = unsupervised(layout)
    found = answer(layout, sender, name, 0.0 if asleep else PATIENCE)
    if found is not None and not found.data.get("ok"):
        raise CoralError(found.text("message"), found.text("hint"))
    message, hint = _waits(layout, sender, asleep) if found is None else (found.text("message"), found.text("hint"))
    if as_json:
        told = {"run": layout.root.name, "request": name, "answered": found is not None}
        print(json.dumps({**told, "message": message, "hint": hint}))
        return 0
    print(message)
    if hint:
        print(f"  {hint}")
    return 0


def _waits(layout: Layout, sender: str, asleep: bool) -> tuple[str, str]:
    """What becomes of a request that nobody has answered; and to the operator, where the answer will be."""
    said = "asked; there is no answer yet: it takes effect when the supervisor reads it"
    if asleep:
        said = "asked; nobody supervises this run: it takes effect when the run is resumed"
    if sender != OPERATOR:
        return said, ""
    from coral.cli.run_data import run_lookup  # only here: an eval waits without
    from coral.cli.ui import program_name  # only here: an eval waits without

    flag, coral = run_lookup.flag(layout), program_name.program()
    after = f"after `{coral} resume{flag}`, " if asleep else ""
    return said, f"{after}`{coral} attach{flag} --plain` tells what came of it"


def unsupervised(layout: Layout) -> bool:
    """Whether it is certain that nobody supervises the run. A sealed agent cannot tell: then it is not."""
    if not os.access(layout.private, os.R_OK | os.X_OK):
        return False
    from coral.supervisor.lock import holder

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
