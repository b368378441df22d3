"""`coral import`: makes a task from a task of another system, and says what was translated and what was left out."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from attempts.files import expanded
from coral.cli.parser import print_json
from coral.errors import CoralError
from coral.views.format import clean

if TYPE_CHECKING:
    from coral.importing.written_task import MadeTask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("task", metavar="TASK", help="a task of the other CORAL, or a folder for OpenEvolve")
    parser.add_argument("folder", nargs="?", metavar="DEST", help="where to make it (default: NAME-task, here)")
    parser.add_argument("--json", action="store_true", help="for programs: task, its file, and report, a list of lines")


def run(args: argparse.Namespace) -> int:
    from coral.config.load import TASK_FILE
    from coral.importing.written_task import write_task

    given = expanded(args.task)
    made = _made(given)
    name = (given if given.is_dir() else given.absolute().parent).resolve().name
    folder = expanded(args.folder) if args.folder else Path(f"{name}-task")
    write_task(made, folder)
    if args.json:
        return print_json({"task": str((folder / TASK_FILE).resolve()), "report": made.report})
    print(f"Made a task in {folder}: `coral validate {shlex.quote(str(folder))}` checks it and grades its seed.")
    for line in made.report:
        print(f"  {clean(line)}")
    return 0


def _made(given: Path) -> MadeTask:
    from coral.config.load import TASK_FILE, translation_of
    from coral.importing.openevolve import import_openevolve, program_of
    from coral.importing.other_coral import import_task

    file = given / TASK_FILE if given.is_dir() else given
    if file.is_file():
        if translation_of(file) is not None:
            return import_task(file)
        raise CoralError(f"cannot import {given}: it is a task of Coral already", "`coral start` runs it as it is")
    if given.is_dir() and program_of(given) is not None:
        return import_openevolve(given)
    hint = "it needs a task.yaml, or an initial_program and an evaluator.py; `coral init --from` looks at a repository"
    raise CoralError(f"cannot import {given}: it is no task that is known", hint)
