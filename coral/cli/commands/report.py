"""`coral report`: writes the run as one HTML file, to read, to print or to send."""

import argparse

from attempts.files import expanded
from coral.cli.parser import print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.write_file import write_result
from coral.reading.run_view import RunView
from coral.views import format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="RUN", help="its folder or name (default: the run around here)")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it (default: <task>-<run>.html)")
    parser.add_argument("--force", action="store_true", help="replace FILE if it exists")
    parser.add_argument("--json", action="store_true", help="for programs: run, file, bytes")
    run_lookup.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    args.run = args.name or args.run
    view = RunView(run_lookup.run_of(args))
    from coral.cli.report.page import page  # takes longer to import than to find the run

    target = expanded(args.output or f"{view.slug}-{view.name}.html")
    data = page(view).encode("utf-8", "replace")
    write_result(target, data, force=args.force or args.output is None)
    if args.json:
        return print_json({"run": view.name, "file": str(target), "bytes": len(data)}, None)
    attempts = format.plural(view.attempts, "attempt")
    print(f"{target}: {view.task}, {attempts}, {max(1, len(data) // 1000)} kB")
    return 0
