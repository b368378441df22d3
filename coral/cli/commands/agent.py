"""`coral agent`: pause an agent, let it go on, restart it, or retire it. The others are not disturbed."""

import argparse

from coral.cli.commands.tell import check_agent
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError
from coral.reading.run_view import RunView

JSON_HELP = f"{send_request.JSON_HELP}; of several agents a list"
VERBS = {
    "pause": "interrupt it, and start it no more until `unpause`; what it submitted is graded",
    "unpause": "let it go on, in the same conversation",
    "restart": "end its launch and begin another at once; also of one that waits, is parked or has retired",
    "retire": "interrupt it for good; `restart` brings it back",
}


def add_arguments(parser: Parser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    verbs = parser.verbs()
    verbs.required = True
    for name, text in VERBS.items():
        about = f"{text[0].upper()}{text[1:]}."
        verb = verbs.add_parser(name, help=text, description=about, example="agent-2")
        verb.add_argument("agents", nargs="*", metavar="AGENT", help="which ones")
        verb.add_argument("--all", action="store_true", help="all agents of the run")
        if name == "restart":
            verb.add_argument("--fresh", action="store_true", help="in a new conversation")
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=JSON_HELP)
        run_lookup.add_arguments(verb, argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator(f"{args.verb} an agent")
    view = RunView(run_lookup.run_of(args))
    for agent in args.agents:
        check_agent(view, agent)
    agents = view.agents() if args.all else dict.fromkeys(args.agents)
    if not agents:
        raise CoralError(f"cannot {args.verb} nobody", f"coral agent {args.verb} AGENT, or --all")
    more = {"fresh": True} if args.verb == "restart" and args.fresh else {}
    answers, refused = [], []
    for agent in agents:
        try:
            answers.append(send_request.answer_to(view.layout, sender, {"type": args.verb, "agent": agent, **more}))
        except CoralError as error:  # the others are asked all the same
            refused.append(error)
        else:
            if not args.json:
                send_request.show(answers[-1])
    if args.json and answers:
        print_json(answers if args.all or len(agents) > 1 else answers[0], None)
    if answers and not args.json:
        send_request.name_run(view.layout, sender)
    if refused:
        raise refused[0]
    return 0
