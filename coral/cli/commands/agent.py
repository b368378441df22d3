"""`coral agent`: pauses agents, lets them go on, restarts, retires or moves them, or adds one to the running fleet; the
other agents are not disturbed."""

import argparse
from collections.abc import Mapping
from typing import Any

from coral.cli import complain
from coral.cli.commands.tell import check_agent
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError
from coral.reading.run_view import RunView
from workspace.layout import Layout

JSON_HELP = f"{send_request.JSON_HELP}; of several agents a list"
VERBS = {
    "pause": "interrupt it, and start it no more until `unpause`; what it submitted is graded",
    "unpause": "let it go on, in the same conversation",
    "restart": "end its launch and begin another at once; also of one that waits, is parked or has retired",
    "retire": "interrupt it for good; `restart` brings it back",
    "move": "give it another model, role or runtime from its next launch on; moved back, it is as before",
}
ADD = "add an agent to the fleet, in a workspace of its own that begins at the seed; `retire` undoes it"
KEYS = ("runtime", "model", "role", "options")


def add_arguments(parser: Parser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    verbs = parser.verbs()
    verbs.required = True
    for name, text in VERBS.items():
        about = f"{text[0].upper()}{text[1:]}."
        example = "agent-2 --model opus" if name == "move" else "agent-2"
        verb = verbs.add_parser(name, help=text, description=about, example=example)
        verb.add_argument("agents", nargs="*", metavar="AGENT", help="which ones")
        verb.add_argument("--all", action="store_true", help="all agents of the run")
        if name == "restart":
            verb.add_argument("--fresh", action="store_true", help="in a new conversation")
        if name == "move":
            _add_keys(verb, "as it is")
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=JSON_HELP)
        run_lookup.add_arguments(verb, argparse.SUPPRESS)
    verb = verbs.add_parser(
        "add", help=ADD, description=f"{ADD[0].upper()}{ADD[1:]}.", example="--model opus --name reviewer"
    )
    verb.add_argument("--name", default="", help="its name; default: the next number, as agent-4")
    _add_keys(verb, "as the task's first agents")
    verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=send_request.JSON_HELP)
    run_lookup.add_arguments(verb, argparse.SUPPRESS)


def _add_keys(verb: Parser, default: str) -> None:
    verb.add_argument("--runtime", help=f"the program that drives it, as agents.runtime; default: {default}")
    verb.add_argument("--model", help="the model that it uses; '' for the program's own")
    verb.add_argument("--role", help="its role in the fleet, which is added to its instructions")
    verb.add_argument("--options", metavar="YAML", type=_options, help="options of the runtime, as agents.options")


def _options(text: str) -> object:
    from coral.config.document import read

    document = read(text)
    if document.problems or not isinstance(document.data, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is no mapping, such as '{{brain: llm}}'")
    return document.data


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator(f"{args.verb} an agent")
    if args.verb == "add":
        return _add(args, sender)
    view = RunView(run_lookup.run_of(args))
    for agent in args.agents:
        check_agent(view, agent)
    agents = view.agents() if args.all else dict.fromkeys(args.agents)
    if not agents:
        raise CoralError(f"cannot {args.verb} nobody", f"coral agent {args.verb} AGENT, or --all")
    answers, refused = [], []
    for agent in agents:
        try:
            answers.append(send_request.answer_to(view.layout, sender, _request(args, view.layout, agent)))
        except CoralError as error:  # the other requests are sent all the same
            refused.append(error)
        else:
            if not args.json:
                send_request.show(answers[-1])
    if args.json and answers:
        print_json(answers if args.all or len(agents) > 1 else answers[0], None)
    if answers and not args.json:
        send_request.name_run(view.layout, sender)
    if refused:
        *others, last = {(str(error), error.hint): error for error in refused}.values()
        for other in others:
            complain(str(other), other.hint)
        raise last
    return 0


def _request(args: argparse.Namespace, layout: Layout, agent: str) -> dict[str, Any]:
    if args.verb == "move":
        wanted = _wanted(args)
        _check(layout, agent, wanted)
        return {"type": "move_agent", "agent": agent, **wanted}
    return {"type": args.verb, "agent": agent} | ({"fresh": True} if args.verb == "restart" and args.fresh else {})


def _add(args: argparse.Namespace, sender: str) -> int:
    layout, wanted = run_lookup.run_of(args), _wanted(args)
    _check(layout, None, wanted)
    return send_request.ask(layout, sender, {"type": "add_agent", "name": args.name, **wanted}, as_json=args.json)


def _wanted(args: argparse.Namespace) -> dict[str, Any]:
    return {key: given for key in KEYS if (given := getattr(args, key)) is not None}


def _check(layout: Layout, agent: str | None, wanted: Mapping[str, Any]) -> None:
    from coral.fleet.members import WantedMember
    from coral.runs.membership import check_of_run

    check_of_run(layout, agent, WantedMember(**wanted))
