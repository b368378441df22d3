"""`coral wait`: waits for the grade of a submission, prints it, and stays for the heartbeats that follow.

Standard library only.
"""

import argparse
import sys
import time
from dataclasses import asdict

from attempts.inbox import submission_ids
from attempts.record import Attempt, Kind, Verdict, to_dict
from attempts.store import Store
from coral.cli import EXIT_INTERRUPTED, EXIT_PENDING, EXIT_USER_ERROR
from coral.cli.parser import Parser, attempt_number, finite, patience, print_json
from coral.cli.run_data import send_request, submissions
from coral.cli.run_data.run_lookup import agent_here
from coral.cli.run_data.submissions import Inline, SubmissionState
from coral.errors import CoralError
from coral.reading.lenient_json import LenientJson
from coral.reading.visibility import alone_in, check_may_see
from coral.views import format
from coral.views.scale import Scale
from workspace.layout import Layout

STAY = 120.0  # seconds to wait for the interrupt that a heartbeat brings; after that none will come
MEANING = {
    Verdict.NEW_BEST: "the best so far",
    Verdict.OWN_BEST: "your best so far",
    Verdict.TIED: "no difference that shows",
    Verdict.WORSE: "worse",
    Verdict.FAILED: "the grader could not score it",
    Verdict.VOID: "not your fault; it does not count",
}
OF_A_TRIAL = "better than your best, and no best itself: submit it without --tune"


def add_arguments(parser: Parser) -> None:
    which, most = "the attempt; otherwise your last submission", "wait at most S seconds (default: as long as you may)"
    parser.add_argument("number", type=attempt_number, nargs="?", metavar="N", help=which)
    parser.add_argument("--timeout", type=finite, metavar="S", help=most)
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
    own = submission_ids(store.root, agent)
    if args.number is None and not own:
        raise CoralError("cannot wait: you have submitted nothing yet", "coral eval -m 'what you tried'")
    submission = own[-1] if args.number is None else _submission(store, agent, own, args.number)
    seconds = patience(args.timeout)
    if submission:
        return finish(layout, agent, submission, seconds, as_json=args.json)
    outcome = SubmissionState(number=args.number, attempt=_others(layout, args.number), settled=True)
    _show(outcome, args.json)
    return 0


def finish(layout: Layout, agent: str, submission: str, seconds: float, *, as_json: bool) -> int:
    """Wait for one submission of this agent, print what came of it, and stay for the heartbeats that follow. Return the
    exit code."""
    try:
        outcome = submissions.wait(layout, agent, submission, seconds)
    except KeyboardInterrupt:
        return interrupted(layout, agent, submission, as_json=as_json)
    _show(outcome, as_json)
    if outcome.refused:
        return EXIT_USER_ERROR
    if outcome.attempt is None:
        return EXIT_PENDING
    _acknowledge(layout, agent, outcome.inline)
    if outcome.heartbeats:
        _stay(outcome.heartbeats, as_json)
    return 0


def interrupted(layout: Layout, agent: str, submission: str, *, as_json: bool) -> int:
    """Print the result if it is there, because a heartbeat may interrupt just when the record is published; else print
    that the submission remains. Its result is then in the next prompt. Return the exit code."""
    store = Store(layout.attempts)
    outcome = submissions.outcome_of(store, agent, submission)
    if outcome.attempt is None:
        print("interrupted; the submission stays: `coral wait` gives its result", file=sys.stderr)
    else:
        _show(outcome, as_json)
    return EXIT_INTERRUPTED


def _submission(store: Store, agent: str, own: list[str], number: int) -> str:
    """Return the agent's own submission that became attempt `number`; empty if none did."""
    for id in reversed(own):
        if LenientJson(store.read_reply(agent, id)).integer("attempt") == number:
            return id
    return ""


def _others(layout: Layout, number: int) -> Attempt:
    attempt = Store(layout.attempts).find(number)
    if attempt is None:
        hint = "`coral wait` without a number waits for your last submission"
        raise CoralError(f"cannot wait for #{number}: it is no attempt of yours, and not graded", hint)
    check_may_see(alone_in(layout), attempt, "wait for")
    return attempt


def _show(outcome: SubmissionState, as_json: bool) -> None:
    if as_json:
        print_json(_data(outcome))
    elif outcome.refused:
        print(f"coral: cannot grade this submission: {outcome.refused}", file=sys.stderr)
        if outcome.hint:
            print(f"  {outcome.hint}", file=sys.stderr)
    elif outcome.attempt is None:
        _pending(outcome)
    else:
        print(_result(outcome.attempt, outcome.scale), flush=True)
        for heartbeat in outcome.inline:
            text = format.clean(heartbeat.text).strip()
            print(f"\n## Heartbeat: {heartbeat.name} (id {heartbeat.id})\n\n{text}", flush=True)


def _pending(outcome: SubmissionState) -> None:
    again = f"coral wait {outcome.number}" if outcome.number is not None else "coral wait"
    if outcome.abandoned:
        print("nobody supervises this run: the submission is kept, and graded when the run is resumed")
    elif outcome.number is None:
        print("submitted, not taken in yet")
    else:
        print(f"#{outcome.number} is not graded yet")
    print(f"  {again}")


def _acknowledge(layout: Layout, agent: str, inline: tuple[Inline, ...]) -> None:
    """Tell the supervisor that these heartbeats were delivered by this command, so that it does not interrupt the agent
    for them."""
    if ids := [heartbeat.id for heartbeat in inline if heartbeat.id]:
        send_request.send(layout, agent, {"type": "acknowledge", "messages": ids})


def _stay(names: tuple[str, ...], as_json: bool) -> None:
    """Keep the agent in this command, which the interrupt ends within milliseconds, so that the interrupt cuts off no
    other work."""
    if not as_json:
        listed = ", ".join(names)
        print(f"\nA heartbeat follows ({listed}): you will be interrupted here and continue with it.", flush=True)
    deadline = time.monotonic() + STAY
    while (left := deadline - time.monotonic()) > 0:
        time.sleep(left)


def _result(attempt: Attempt, scale: Scale) -> str:
    """Return the result of an attempt in words for the agent that made it."""
    score = format.score(attempt.score) if attempt.score is not None else "no score"
    of = f" of #{attempt.of}" if attempt.kind is Kind.CONFIRM else ""
    kind = f" ({attempt.kind}{of})" if attempt.kind in (Kind.TUNE, Kind.CONFIRM) else ""
    difference = scale.of(attempt)
    is_trial = attempt.kind is Kind.TUNE and attempt.verdict is Verdict.OWN_BEST
    meaning = OF_A_TRIAL if is_trial else MEANING[attempt.verdict]
    verdict = f"{attempt.verdict} - {meaning}{difference and f' ({difference})'}"
    if attempt.kind is Kind.BASELINE:
        verdict = attempt.title
    lines = [f"#{attempt.number}{kind}: {score}, {verdict}"]
    if attempt.reason:
        lines.append(f"reason: {format.clean(attempt.reason)}")
    lines += [f"{format.line(name)}: {format.metric(value)}" for name, value in attempt.metrics.items()]
    if attempt.feedback.strip():
        lines += ["", format.clean(attempt.feedback).strip()]
    return "\n".join(lines)


def _data(outcome: SubmissionState) -> dict[str, object]:
    attempt = outcome.attempt
    state = "refused" if outcome.refused else "graded" if attempt is not None else "pending"
    data: dict[str, object] = {"attempt": outcome.number, "state": state}
    if outcome.refused:
        data |= {"refused": outcome.refused, "hint": outcome.hint, "reason": outcome.reason}
    if attempt is not None:
        data["record"] = to_dict(attempt)
        data["heartbeats"] = list(outcome.heartbeats)
        data["inline"] = [asdict(heartbeat) for heartbeat in outcome.inline]
    return data
