"""`coral ui`: the dashboard of a run in a browser. It reads what the run publishes; what it changes it requests."""

import argparse
import sys

from coral.cli.parser import count
from coral.cli.run_data import run_lookup
from coral.errors import CoralError
from coral.extras import installs
from coral.reading.visibility import is_agent

LOOPBACK = "127.0.0.1"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("--port", type=count, metavar="N", help="its port (default: 7331, or a free one)")
    where = f"the address to serve at (default: {LOOPBACK}); any other lets other machines in that have the token"
    parser.add_argument("--host", default=LOOPBACK, metavar="ADDRESS", help=where)


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    if is_agent():
        raise CoralError("cannot serve the dashboard: that is for the operator", "agents have `coral status`")
    try:
        from coral.web import server
    except ModuleNotFoundError as error:
        raise CoralError(f"cannot serve the dashboard: {error.name} is not installed", installs("ui")) from None
    bound = server.bind(args.host, args.port)
    access = server.access_at(bound)
    if text := server.warning(args.host):
        print(f"coral: {text}", file=sys.stderr)
    print(f"{layout.root.name}: {server.address(args.host, access)}", flush=True)
    print("Ctrl-C ends the dashboard; the run continues", file=sys.stderr)
    server.serve(layout, bound, access)
    return 0
