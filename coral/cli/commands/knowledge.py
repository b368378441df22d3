"""`coral knowledge publish`: writes what a run has learned into a folder, for later runs and for other people."""

import argparse

from attempts.files import expanded
from coral.cli.parser import Parser, print_json
from coral.cli.run_data import run_lookup
from coral.cli.run_data.send_request import as_operator
from coral.errors import CoralError
from coral.reading.run_view import RunView
from coral.views import format
from workspace.layout import folder_of_runs

FOLDER = "knowledge"
JSON_HELP = "for programs: to, notes, skills"


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    verbs = parser.verbs()
    publish = verbs.add_parser(
        "publish", help="write a run's conclusions and skills into a folder", example="--to ~/team-knowledge"
    )
    publish.add_argument(
        "--to", metavar="FOLDER", help=f"a folder that may hold many runs (default: {FOLDER}/ beside runs/)"
    )
    publish.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="for programs: to, notes, skills"
    )
    run_lookup.add_arguments(publish)


def run(args: argparse.Namespace) -> int:
    if args.verb is None:
        raise CoralError("cannot do nothing with knowledge", "coral knowledge publish --to FOLDER")
    return _publish(args)


def _publish(args: argparse.Namespace) -> int:
    from coral.cli.run_data.earlier import of_run, publish

    as_operator("publish knowledge")
    layout = run_lookup.run_of(args)
    earlier = of_run(layout)
    if not earlier.notes and not earlier.skills:
        hint = "a synthesis, dead ends and notes that the records support are published; `coral notes` shows the notes"
        raise CoralError(f"cannot publish {layout.root.name}: it has no conclusions and no skills", hint)
    folder = expanded(args.to) if args.to else folder_of_runs(layout).parent / FOLDER
    to = folder / RunView(layout).slug / layout.root.name
    publish(earlier, to)
    if args.json:
        return print_json({"to": str(to), "notes": len(earlier.notes), "skills": len(earlier.skills)})
    notes, skills = format.plural(len(earlier.notes), "note"), format.plural(len(earlier.skills), "skill")
    print(f"{notes} and {skills} in {to}")
    print(f"a later run begins with them: coral start TASK --knowledge {folder}")
    return 0
