"""`coral wait`: stay for the grade of an earlier submission, and for the heartbeats that follow it.

Standard library only.
"""

from __future__ import annotations

import argparse
import sys
import time

from attempts.record import Attempt
from attempts.store import Store
from coral.cli import EXIT_INTERRUPTED, EXIT_PENDING, EXIT_USER_ERROR
from coral.cli.commands import result
from coral.cli.parser import Parser, attempt_number, finite
from coral.cli.run_data import send_request, submissions, visibility
from coral.cli.run_data.lenient_json import LenientJson
from coral.cli.run_data.run_lookup import agent_here
from coral.cli.run_data.submissions import Inline, Outcome
from coral.errors import CoralError
from coral.views import format
from workspace.layout import Layout

STAY = 120.0  # seconds to wait for the interrupt that a heartbeat brings; then something else took its place


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "number", type=attempt_number, nargs="?", metavar="N", help="the attempt; otherwise your last submission"
    )
    parser.add_argument(
        "--timeout", type=finite, metavar="S", help="wait at most S seconds (default: as long as you may)"
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.exit_codes = {
        0: "graded, whatever the verdict",
        EXIT_USER_ERROR: "refused, or there is nothing to wait for",
        EXIT_PENDING: "not graded yet",
        EXIT_INTERRUPTED: "interrupted; the submission stays",
    }


def run(args: argparse.Namespace) -> int:
    layout, agent = agent_here()
    store = Store(layout.attempts)
    own = submissions.own(store, agent)
    if args.number is None and not own:
        raise CoralError("cannot wait: you have submitted nothing yet", "coral eval -m 'what you tried'")
    submission = own[-1] if args.number is None else _submission(store, agent, own, args.number)
    seconds = submissions.patience(args.timeout)
    if submission:
        return finish(layout, agent, submission, seconds, as_json=args.json)
    outcome = Outcome(number=args.number, attempt=_others(layout, args.number), settled=True)
    _show(store, outcome, args.json)
    return 0


def finish(layout: Layout, agent: str, submission: str, seconds: float, *, as_json: bool) -> int:
    """Wait for one submission of this agent, say what became of it, and stay for what follows."""
    store = Store(layout.attempts)
    try:
        outcome = submissions.wait(layout, agent, submission, seconds)
    except KeyboardInterrupt:
        # A heartbeat interrupts in the moment in which the record is out: what it says is still worth printing.
        outcome = submissions.look(store, agent, submission)
        if outcome.attempt is None:
            return interrupted()
        _show(store, outcome, as_json)
        return EXIT_INTERRUPTED
    _show(store, outcome, as_json)
    if outcome.refused:
        return EXIT_USER_ERROR
    if outcome.attempt is None:
        return EXIT_PENDING
    _acknowledge(layout, agent, outcome.inline)
    if outcome.heartbeats:
        _stay(outcome.heartbeats, as_json)
    return 0


def interrupted() -> int:
    """Usually by a heartbeat: the conversation goes on in a moment, and there the agent gets the result."""
    print("interrupted; the submission stays: `coral wait` gives its result", file=sys.stderr)
    return EXIT_INTERRUPTED


def _submission(store: Store, agent: str, own: list[str], number: int) -> str:
    """Which of the own submissions became attempt `number`; empty when it is not one of them."""
    for name in reversed(own):
        if LenientJson(store.read_reply(agent, name)).integer("attempt") == number:
            return name
    return ""


def _others(layout: Layout, number: int) -> Attempt:
    attempt = submissions.published(Store(layout.attempts), number)
    if attempt is None:
        hint = "`coral wait` without a number waits for your last submission"
        raise CoralError(f"cannot wait for #{number}: it is no attempt of yours, and not graded", hint)
    visibility.check(visibility.alone_in(layout), attempt, "wait for")
    return attempt


def _show(store: Store, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print(result.data(store, outcome), flush=True)
    elif outcome.refused:
        print(f"coral: cannot grade this submission: {outcome.refused}", file=sys.stderr)
        if outcome.hint:
            print(f"  {outcome.hint}", file=sys.stderr)
    elif outcome.attempt is None:
        _pending(outcome)
    else:
        print(result.text(store, outcome.attempt), flush=True)
        for each in outcome.inline:
            print(f"\n## Heartbeat: {each.name} (id {each.id})\n\n{format.clean(each.text).strip()}", flush=True)


def _pending(outcome: Outcome) -> None:
    again = f"coral wait {outcome.number}" if outcome.number is not None else "coral wait"
    if outcome.abandoned:
        print("nobody supervises this run: the submission is kept, and graded when the run is resumed")
    elif outcome.number is None:
        print("submitted, not taken in yet")
    else:
        print(f"#{outcome.number} is not graded yet")
    print(f"  {again}")


def _acknowledge(layout: Layout, agent: str, inline: tuple[Inline, ...]) -> None:
    """What was printed here is delivered: it need not interrupt anybody."""
    owed = [each.id for each in inline if each.id]
    if owed:
        send_request.send(layout, agent, {"type": "acknowledge", "owed": owed})


def _stay(names: tuple[str, ...], as_json: bool) -> None:
    """Keep the agent at this place: the interrupt comes in milliseconds, and cuts nothing but this wait."""
    if not as_json:
        said = ", ".join(names)
        print(f"\nA heartbeat follows ({said}): you will be interrupted here and go on with it.", flush=True)
    deadline = time.monotonic() + STAY
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(left)
