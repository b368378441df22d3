"""Sends requests to the supervisor: each is a file in the sender's folder of requests, and its answer is a file in the
folder of replies.

A request remains if nobody answers: the supervisor reads it later, or when the run is resumed.
"""

import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from attempts.fields import SUBMISSION_ID
from attempts.files import entries, is_plain_file, write_json
from attempts.inbox import next_id
from coral.cli.parser import print_json
from coral.cli.run_data.run_lookup import command, unmade
from coral.errors import CoralError
from coral.reading import lenient_json
from coral.reading.lenient_json import LenientJson
from workspace.disk import MAKE_WRITABLE, is_unwritable
from workspace.layout import OPERATOR, Layout, can_see_private

PATIENCE = 10.0  # seconds for an answer; twice the default poll of the supervisor
JSON_HELP = "for programs: run, request, answered, message, hint"


class UnwritableError(CoralError):
    """No request can be written, as on a full disk: whom it was meant for may be reached in another way."""


def send(layout: Layout, sender: str, request: Mapping[str, object]) -> str:
    """Write a request and return its id. A later request has a greater id, whatever the clock says, and so is read
    later. CoralError if it cannot be written."""
    requests, replies = layout.requests_of(sender), layout.replies_to(sender)
    while True:
        id = next_id(max([*_ids(requests), *_ids(replies)], default=""))
        try:
            write_json(requests / f"{id}.json", request, durable=True, new=True)
        except FileExistsError:
            continue  # another process chose the same id at this moment
        except OSError as error:
            if not is_unwritable(error):
                raise
            message = f"cannot write in {requests}: {error.strerror}"
            if isinstance(error, PermissionError):
                raise CoralError(message, "is it your run?") from None
            raise UnwritableError(message, MAKE_WRITABLE) from None
        return id


def _ids(folder: Path) -> Iterator[str]:
    return (path.stem for path in entries(folder, is_plain_file) if SUBMISSION_ID.fullmatch(path.stem))


def take_back(layout: Layout, sender: str, *types: str) -> None:
    """Remove unread requests of these types, which were meant for a supervisor that is gone: the next one would carry
    them out."""
    for path in layout.requests_of(sender).glob("*.json"):
        if lenient_json.read(path).text("type") in types:
            path.unlink(missing_ok=True)


def answer(layout: Layout, sender: str, id: str, seconds: float) -> LenientJson | None:
    """Wait for the answer to a request; None if there is none within `seconds`."""
    path = layout.replies_to(sender) / f"{id}.json"
    for _ in pauses(seconds):
        if found := lenient_json.read(path):
            return found
    return None


def ask(layout: Layout, sender: str, request: Mapping[str, object], *, as_json: bool) -> int:
    """Send a request and print its answer; return 0 if it was granted or is not answered yet. CoralError if it is
    refused."""
    answered = answer_to(layout, sender, request)
    if as_json:
        return print_json(answered, None)
    show(answered)
    name_run(layout, sender)
    return 0


def show(answered: Mapping[str, object]) -> None:
    print(answered["message"])
    if answered["hint"]:
        print(f"  {answered['hint']}")


def name_run(layout: Layout, sender: str) -> None:
    """Tell the operator, who may have several runs, which run got the request; on standard error, since it is no part
    of the answer."""
    if sender == OPERATOR:
        print(f"  run: {layout.root.parent.name}/{layout.root.name}", file=sys.stderr)


def answer_to(layout: Layout, sender: str, request: Mapping[str, object]) -> dict[str, object]:
    """Send a request and return its answer for programs, with the keys of JSON_HELP. CoralError if it is refused."""
    is_idle = unsupervised(layout)
    if is_idle:
        _check_beforehand(layout, sender, request)
    id = send(layout, sender, request)
    reply = answer(layout, sender, id, 0.0 if is_idle else PATIENCE)
    if reply is not None and not reply.data.get("ok"):
        raise CoralError(reply.text("message"), reply.text("hint"))
    message, hint = _pending(layout, sender, is_idle) if reply is None else (reply.text("message"), reply.text("hint"))
    answered = {"run": layout.root.name, "request": id, "answered": reply is not None}
    return {**answered, "message": message, "hint": hint}


def _check_beforehand(layout: Layout, sender: str, request: Mapping[str, object]) -> None:
    """Raise CoralError if the supervisor would refuse the request when it resumes the run, as far as that is known
    now."""
    from coral.fleet.actions import Answer
    from coral.fleet.decide import decide
    from coral.fleet.events import Moment, Requested, Resumed
    from coral.fleet.rules import Rules
    from coral.journal import fold
    from coral.supervisor.request_format import read_request

    recovered = fold(layout.journal)
    if not recovered.fleet.run.opened:
        return
    asked = Requested(sender=sender, id="", request=read_request(request))
    now = Moment(run_time=recovered.clock, wall_time=recovered.wall)
    _, actions = decide(recovered.fleet, [Resumed(), asked], now, recovered.rules or Rules())
    for action in actions:
        if isinstance(action, Answer) and not action.ok:
            raise CoralError(action.message, action.hint)


def _pending(layout: Layout, sender: str, is_idle: bool) -> tuple[str, str]:
    """Return what will come of a request that is not answered, and for the operator how to see it."""
    message = "requested; there is no answer yet: it takes effect when the supervisor reads it"
    if is_idle:
        from coral.reading.run_view import RunView  # slow to import, and an agent has no use for it

        if not RunView(layout).is_made:
            why, hint = unmade(layout)
            return f"requested; nobody supervises this run: {why}", hint
        message = "requested; nobody supervises this run: it takes effect when the run is resumed"
    if sender != OPERATOR:
        return message, ""
    after = f"after `{command('resume', layout)}`, " if is_idle else ""
    return message, f"{after}`{command('attach', layout)} --plain` shows what came of it"


def unsupervised(layout: Layout) -> bool:
    """Return whether it is certain that nobody supervises the run. For a sealed agent it never is, since it cannot see
    the lock."""
    if not can_see_private(layout):
        return False
    from coral.supervisor.lock import holder

    return holder(layout.lock) is None


def as_operator(what: str) -> str:
    """Return the name of the operator as a sender. CoralError for a program that runs as an agent."""
    agent = os.environ.get("CORAL_AGENT")
    if agent:
        raise CoralError(f"cannot {what}: that is for the operator, and you are {agent}", "ask with an ALERT: line")
    return OPERATOR


def pauses(seconds: float) -> Iterator[float]:
    """Yield the seconds that have passed, each time that the caller should look again: at once, and for the last time
    after `seconds`. A pause is a twentieth of the time that has passed, from 2 to 50 ms; after 10 s it is one second,
    so that a long wait costs next to nothing."""
    start = time.monotonic()
    while True:
        passed = time.monotonic() - start
        yield passed
        if passed >= seconds:
            return
        pause = min(max(0.002, passed / 20), 0.05) if passed < 10 else 1.0
        time.sleep(min(pause, max(0.0, seconds - passed)))
