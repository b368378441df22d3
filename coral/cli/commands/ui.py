"""`coral ui`: serves the dashboard of a run for a browser. It reads what the run publishes; to change something it
sends requests."""

import argparse
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO

from coral.cli.parser import count, print_json
from coral.cli.run_data import run_lookup
from coral.errors import CoralError
from coral.extras import installs
from coral.reading.visibility import is_agent
from workspace.layout import Layout

LOOPBACK = "127.0.0.1"
PACKAGES = ("starlette", "uvicorn", "sse_starlette")
END_SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run_lookup.add_arguments(parser)
    parser.add_argument("--port", type=count, metavar="N", help="its port (default: 7331, or a free one)")
    where = f"the address to serve at (default: {LOOPBACK}); any other lets other machines in that have the token"
    parser.add_argument("--host", default=LOOPBACK, metavar="ADDRESS", help=where)
    parser.add_argument("--json", action="store_true", help="for programs: one line with run and address")
    parser.add_argument("--until-input-ends", action="store_true", help="end when standard input does")


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    if is_agent():
        raise CoralError("cannot serve the dashboard: that is for the operator", "agents have `coral status`")
    check_installed()
    from coral.web import server

    bound = server.bind(args.host, args.port)
    access = server.access_at(bound)
    if text := server.warning(args.host):
        print(f"coral: {text}", file=sys.stderr)
    address = server.address(args.host, access)
    if args.json:
        print_json({"run": layout.root.name, "address": address}, indent=None)
    else:
        print(f"{layout.root.name}: {address}", flush=True)
    if not (args.json or args.until_input_ends):
        print("Ctrl-C ends the dashboard; the run continues", file=sys.stderr)
    server.serve(layout, bound, access, sys.stdin if args.until_input_ends else None)
    return 0


def check_installed() -> None:
    """Raise CoralError if the packages for the dashboard are not installed."""
    missing = next((name for name in PACKAGES if find_spec(name) is None), None)
    if missing is not None:
        raise CoralError(f"cannot serve the dashboard: {missing} is not installed", installs("ui"))


@contextmanager
def beside(layout: Layout) -> Iterator[str]:
    """Serve the dashboard in a process of its own, and give its address. That process also ends if this one dies,
    because its standard input ends then. CoralError if the dashboard cannot be served."""
    command = [sys.executable, "-P", "-m", "coral", "ui", "--run", str(layout.root), "--json", "--until-input-ends"]
    pipe = subprocess.PIPE
    # In a session of its own, so that Ctrl-C goes to the run alone.
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline().strip()
        if not line:
            with process.stderr:
                message = process.stderr.read().decode("utf-8", "replace")
            why = message.strip().partition("\n")[0].removeprefix("coral: ")
            raise CoralError(why or "cannot serve the dashboard", "start it beside the run: coral ui")
        threading.Thread(target=_drain, args=(process.stderr,), daemon=True).start()
        yield json.loads(line)["address"]
    finally:
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def _drain(stream: IO[bytes]) -> None:
    """Read a pipe to its end: if it were full, the process that writes to it would stand still."""
    with stream:
        while stream.read(1 << 16):
            pass
