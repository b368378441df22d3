"""`coral verify`: grades the commit of a record again, strictly, and says whether the score is the same."""

import argparse
from dataclasses import asdict

from attempts.index import query
from attempts.noise import Noise, noise_at
from attempts.record import Kind
from coral.cli import EXIT_USER_ERROR
from coral.cli.parser import Parser, attempt_number, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.cli.ui.progress import steps
from coral.errors import CoralError
from coral.reading.run_view import RunView
from coral.reading.settings import config_of
from coral.runs.verify import verify


def add_arguments(parser: Parser) -> None:
    parser.exit_codes = {0: "it scores the same", EXIT_USER_ERROR: "it does not"}
    parser.add_argument("number", type=attempt_number, metavar="N", help="the attempt")
    about = "for programs: number, recorded, score, channel, is_same, noise"
    parser.add_argument("--json", action="store_true", help=about)
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    send_request.as_operator("verify an attempt")
    view = RunView(run_lookup.run_of(args))
    attempt = view.attempt(args.number, "verify")
    if attempt.kind is Kind.TUNE:
        why = "it is a trial of numbers (--tune), which graders may score by another rule"
        hint = "verify an attempt with the same files that was submitted without --tune"
        raise CoralError(f"cannot verify #{attempt.number}: {why}", hint)
    measured = view.index.ask(lambda rows: query.measured(rows, attempt.number))
    if measured is None:
        raise CoralError(f"cannot verify #{attempt.number}: it has no score", "`coral log` lists those that have one")
    if attempt.epoch < view.epoch:
        raise CoralError(f"cannot verify #{attempt.number}: the task has changed since", "its grader is no more")
    with steps() as say:
        say(f"grading #{attempt.number} again")
        found = verify(view.layout, attempt, measured.scores, _noise(view, measured.median))
    if args.json:
        print_json(asdict(found), None)
    else:
        print(found.text)
    return 0 if found.is_same else 1


def _noise(view: RunView, level: float) -> Noise:
    """Return the noise of scores near `level`. That in status.json is the noise of the best: it may grow with the
    score."""
    config = config_of(view)
    return noise_at(config.grader.noise_setting, level, view.index.ask(query.repeated)) if config else Noise()
