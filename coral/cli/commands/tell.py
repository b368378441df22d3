"""`coral tell`: sends a message from the operator to agents. They get it with their next heartbeat, result or
launch."""

import argparse

from coral.cli.run_data import run_lookup, send_request
from coral.errors import CoralError
from coral.reading.run_view import RunView

EVERYBODY = "*"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="what to say")
    parser.add_argument("--agent", metavar="AGENT", help="to one agent; otherwise to all of them")
    run_lookup.add_arguments(parser)
    parser.add_argument("--json", action="store_true", help=send_request.JSON_HELP)


def run(args: argparse.Namespace) -> int:
    sender = send_request.as_operator("tell the agents anything")
    view = RunView(run_lookup.run_of(args))
    text, to = str(args.text).strip(), args.agent or EVERYBODY
    if not text:
        raise CoralError("cannot tell the agents nothing", "coral tell 'try fewer restarts'")
    check_agent(view, args.agent)
    return send_request.ask(view.layout, sender, {"type": "tell", "to": to, "text": text}, as_json=args.json)


def check_agent(view: RunView, agent: str | None, others: str = "") -> None:
    """Raise CoralError if the run has no agent of this name. `others`: appended to the hint, by a command that also
    takes something else than an agent."""
    agents = view.agents()
    if agent is not None and agent not in agents:
        raise CoralError(f"cannot find the agent {agent!r} in {view.name}", f"its agents: {', '.join(agents)}{others}")
