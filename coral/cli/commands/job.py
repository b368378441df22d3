"""`coral job`: long work of an agent that goes on between its launches. The supervisor starts it, ends it and writes
its record.

An agent sees and ends its own jobs only; the operator sees and ends those of all agents.
"""

import argparse
import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path

from attempts.files import read_end
from coral.cli import EXIT_INTERRUPTED, EXIT_PENDING, EXIT_USER_ERROR
from coral.cli.commands.tell import check_agent
from coral.cli.parser import Parser, count, finite, patience, print_json
from coral.cli.run_data import run_lookup, send_request
from coral.cli.run_data.submissions import launch_here
from coral.errors import CoralError
from coral.fleet.reasons import JobOutcome
from coral.reading import visibility
from coral.reading.lenient_json import LenientJson, read
from coral.reading.run_folder import here
from coral.reading.run_view import RunView
from coral.views import format
from workspace.layout import Layout

LINES = 40
MAX_BYTES = 1 << 20  # at the end of an output, in which its last lines are looked for
EXIT_UNKNOWN = 4
BEGINNING = 2.0  # seconds within which a job that was granted gets its record
DOUBT = 10.0  # seconds between two checks of a wait whether anybody supervises the run


def add_arguments(parser: Parser) -> None:
    _about(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    verbs = parser.verbs()
    start = verbs.add_parser(
        "start", help="start a command that survives interrupts", example="-m 'wide net' python train.py"
    )
    start.add_argument("-m", "--message", metavar="WHAT", default="", help="what it is, in a few words")
    # All that follows belongs to the command, even options, so that nobody has to write `--`.
    start.add_argument("command", nargs=argparse.PARSER, metavar="COMMAND", help="the command and its arguments")
    verbs.add_parser("list", help="all jobs, those that run and those that have ended", example="")
    log = verbs.add_parser("log", help="the last lines that a job printed", example="1 -n 100")
    log.add_argument("-n", "--lines", type=count, default=LINES, metavar="K", help=f"how many lines (default {LINES})")
    wait = verbs.add_parser("wait", help="wait until a job has ended", example="1 --timeout 60")
    wait.add_argument("--timeout", type=finite, metavar="S", help="at most S seconds (default: as long as you may)")
    wait.exit_codes = {
        0: "it ended with exit code 0",
        EXIT_USER_ERROR: "it ended otherwise, or there is no such job",
        EXIT_PENDING: "it still runs",
        EXIT_UNKNOWN: "it ended, and its exit code is not known",
        EXIT_INTERRUPTED: "interrupted",
    }
    for verb in (log, verbs.add_parser("stop", help="end a job", example="1"), wait):
        verb.add_argument("number", type=count, metavar="N")
    for verb in verbs.choices.values():
        _about(verb, default=argparse.SUPPRESS)
        verb.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="for programs")


def _about(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    parser.add_argument("--agent", metavar="AGENT", default=default, help="those of one agent")
    run_lookup.add_arguments(parser, default)


@dataclass(frozen=True)
class Place:
    """Where the command runs. `agent`: the agent in whose workspace that is, None for the operator; `whose`: the agent
    whose jobs the command is about, None for all."""

    layout: Layout
    agent: str | None
    whose: str | None


def run(args: argparse.Namespace) -> int:
    layout = run_lookup.run_of(args)
    agent = visibility.agent_inside()
    if agent is None:
        check_agent(RunView(layout), args.agent)
    elif args.agent not in (None, agent):
        raise CoralError(f"cannot look at the jobs of {args.agent}: you are {agent}", "leave out --agent")
    place = Place(layout, agent, agent or args.agent)
    match args.verb:
        case "start":
            return _start(place, args)
        case "log":
            return _log(place, args.number, args.lines, args.json)
        case "stop":
            sender = place.agent or send_request.as_operator("end the jobs of others")
            if send_request.unsupervised(layout):
                _record(place, args.number)  # CoralError if there is no such job: no supervisor could answer that
            return send_request.ask(layout, sender, {"type": "stop_job", "number": args.number}, as_json=args.json)
        case "wait":
            return _wait(place, args.number, patience(args.timeout), args.json)
    return _list(place, args.json)


def _start(place: Place, args: argparse.Namespace) -> int:
    sender = place.agent or send_request.as_operator("start a job of somebody else")
    whose = place.whose
    if whose is None:
        raise CoralError("cannot start a job: no agent is named", "coral job start --agent agent-1 -- COMMAND")
    folder = ""
    if place.agent is not None:
        inside = here().resolve().relative_to(place.layout.clone(place.agent).resolve())
        folder = "" if inside == Path() else str(inside)
    command = args.command[args.command[:1] == ["--"] :]
    what = args.message.strip()
    request = {"type": "start_job", "agent": whose, "command": command, "what": what, "folder": folder}
    return send_request.ask(place.layout, sender, request, as_json=args.json)


def _list(place: Place, as_json: bool) -> int:
    records = sorted((read(path) for path in _records(place, "*")), key=lambda record: record.integer("number") or 0)
    if as_json:
        return print_json([record.data for record in records])
    if not records:
        print("no jobs yet: coral job start -m 'what it is' -- COMMAND")
        return 0
    # Imported here, since it takes most of the time and the other verbs do not need it.
    from coral.cli.ui.table import print_table, tone

    rows = []
    for record in records:
        about = [record.text("number"), record.text("agent"), tone(record.text("state"))]
        rows.append([*about, _time(record), record.text("how", 200), _title(record)])
    print_table((">job", "agent", "state", ">time", "end*", "title*"), rows)
    return 0


def _log(place: Place, number: int, lines: int, as_json: bool) -> int:
    record = _started(place, number)
    output = place.layout.job_output(record.text("agent"), number)
    size = output.stat().st_size if output.is_file() else 0
    shown = read_end(output, MAX_BYTES).decode(errors="replace").splitlines()[-max(lines, 1) :]
    if as_json:
        print_json({**record.data, "output": str(output), "size": size, "lines": shown})
    else:
        print(f"job {number}, {_summary(record)}; {size} bytes in {output}")
        for line in shown:
            print(format.clean(line))
    sys.stdout.flush()
    _acknowledge(place, record)
    return 0


def _wait(place: Place, number: int, seconds: float, as_json: bool) -> int:
    doubt = DOUBT
    _started(place, number)
    for passed in send_request.pauses(seconds):
        record = _record(place, number)
        if record.text("state") != "running":
            _print(record, f"job {number}: {_summary(record)}\n  coral job log {number}", as_json)
            _acknowledge(place, record)
            if record.text("outcome") == JobOutcome.UNKNOWN:
                return EXIT_UNKNOWN
            return 0 if record.integer("code") == 0 else 1
        if passed >= doubt:
            doubt = passed + DOUBT
            if send_request.unsupervised(place.layout):
                text = "nobody supervises this run: the end of the job is seen when the run is resumed"
                _print(record, text, as_json)
                return EXIT_PENDING
    _print(record, f"job {number} still runs\n  coral job wait {number}", as_json)
    return EXIT_PENDING


def _print(record: LenientJson, text: str, as_json: bool) -> None:
    if as_json:
        print_json(record.data)
    else:
        print(text, flush=True)


def _started(place: Place, number: int) -> LenientJson:
    """Return the record of a job that may have been started just now: its record comes a little later than the answer
    to the request."""
    for _ in send_request.pauses(0.0 if send_request.unsupervised(place.layout) else BEGINNING):
        with contextlib.suppress(CoralError):
            return _record(place, number)
    return _record(place, number)


def _acknowledge(place: Place, record: LenientJson) -> None:
    """Tell the supervisor that the agent has seen the end of its job, so that the agent is not interrupted for it. Do
    nothing if this command was run by another job of the agent, or by a person in its clone."""
    if place.agent is not None and record.text("state") == "ended" and launch_here(place.agent):
        request = {"type": "acknowledge", "jobs": [record.integer("number")]}
        send_request.send(place.layout, place.agent, request)


def _record(place: Place, number: int) -> LenientJson:
    for path in _records(place, str(number)):
        if found := read(path):
            return found
    whose = " of yours" if place.agent else ""
    raise CoralError(f"cannot find job {number}: there is none{whose}", "`coral job list` lists them")


def _records(place: Place, number: str) -> list[Path]:
    logs = place.layout.logs(place.whose or "any").parent
    with contextlib.suppress(OSError):
        return sorted(logs.glob(f"{place.whose or '*'}/job-{number}.json"))
    return []


def _summary(record: LenientJson) -> str:
    if record.text("state") == "running":
        return f"{_title(record)}: running for {_time(record)}"
    return f"{_title(record)}: {record.text('how', 200)}, after {_time(record)}"


def _time(record: LenientJson) -> str:
    ended = record.text("state") != "running"
    return format.duration(record.number("seconds") if ended else format.age(record.data.get("began")))


def _title(record: LenientJson) -> str:
    return record.text("what", 200) or " ".join(record.texts("command"))[:80]
