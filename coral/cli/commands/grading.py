"""`coral grading`: holds the queue of attempts that wait for their grade, releases it, or cancels the grade of one."""

import argparse

from coral.cli.parser import Parser, attempt_number
from coral.cli.run_data import run_lookup, send_request

VERBS = {
    "hold": "begin no grade until `release`; those that run go on, submissions wait",
    "release": "grade what waits",
    "cancel": "end a grade that runs or waits; its attempt is void, which is nobody's fault",
}


def add_arguments(parser: Parser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)
    verbs = parser.verbs()
    verbs.required = True
    for name, text in VERBS.items():
        about, example = f"{text[0].upper()}{text[1:]}.", "17" if name == "cancel" else ""
        verb = verbs.add_parser(name, help=text, description=about, example=example)
        if name == "cancel":
            verb.add_argument("number", type=attempt_number, metavar="N", help="the attempt")
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=send_request.JSON_HELP)
        run_lookup.add_arguments(verb, argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator(f"{args.verb} the grading")
    types = {"hold": "hold_grading", "release": "release_grading", "cancel": "cancel_grade"}
    request = {"type": types[args.verb]} | ({"number": args.number} if args.verb == "cancel" else {})
    return send_request.ask(run_lookup.run_of(args), sender, request, as_json=args.json)
