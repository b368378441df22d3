"""`coral health`: says whether a run is healthy, in one line and an exit code, for cron, systemd and containers."""

import argparse

from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup
from coral.fleet.health import HealthLevel
from coral.reading.run_health import run_health
from coral.reading.run_view import RunView
from coral.views.health import when_text

EXIT_DEGRADED, EXIT_UNHEALTHY, EXIT_UNKNOWN = 4, 5, 6
CODES = {
    HealthLevel.HEALTHY: 0,
    HealthLevel.DEGRADED: EXIT_DEGRADED,
    HealthLevel.UNHEALTHY: EXIT_UNHEALTHY,
    HealthLevel.UNKNOWN: EXIT_UNKNOWN,
}


def add_arguments(parser: Parser) -> None:
    strict = f"exit with {EXIT_DEGRADED} where the run is degraded: it goes on, with less than it has"
    parser.add_argument("--strict", action="store_true", help=strict)
    parser.add_argument("--json", action="store_true", help="for programs: run, level, seconds, reasons")
    parser.exit_codes = {
        0: "healthy; or degraded, without --strict",
        EXIT_DEGRADED: "degraded, with --strict",
        EXIT_UNHEALTHY: "unhealthy: nothing comes of the run until that is over",
        EXIT_UNKNOWN: "unknown: the run has ended, or its supervisor says nothing",
    }
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    view = RunView(run_lookup.run_of(args))
    found = run_health(view)
    level = HealthLevel(found["level"])
    if args.json:
        print_json({"run": view.name, **found}, None)
    else:
        print(f"{view.name} is {level}")
        for reason in found["reasons"]:
            print(f"  {reason['text']}{when_text(reason)}")
    return 0 if level is HealthLevel.DEGRADED and not args.strict else CODES[level]
