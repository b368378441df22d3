"""`coral init`: makes a small task that works as it is, with comments that explain it; with `--from`, a task for a
repository, graded by its tests or by the number that a command prints. Nothing is overwritten."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attempts.files import expanded
from coral.config.load import TASK_FILE, quoted
from coral.config.schema import SHIPPED
from coral.errors import CoralError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coral.importing.repository import Proposal, Repository

TEMPLATE = Path(__file__).parents[2] / "templates" / "task"
HIDDEN = {"gitignore": ".gitignore"}  # kept under other names, since git would obey them in our own repository


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", nargs="?", metavar="DIR", help="where to make it (default: here; with --from, beside)"
    )
    parser.add_argument("--from", dest="source", metavar="PATH", help="look at a repository, and propose a task for it")
    parser.add_argument("--command", metavar="LINE", help="with --from: the score is the number that this prints")
    parser.add_argument("--tests", action="store_true", help="with --from: the score is the share of tests that pass")
    parser.add_argument("--maximize", action="store_true", help="with a command: a larger number is better")
    parser.add_argument("--objective", metavar="TEXT", default="", help="with --from: what agents are told")
    parser.add_argument("--yes", action="store_true", help="with --from: ask nothing, take what is proposed first")
    parser.add_argument("--json", action="store_true", help="for programs: task, its file")


def run(args: argparse.Namespace) -> int:
    if args.source is not None:
        return _from(args)
    if args.command or args.tests or args.maximize or args.objective:
        raise CoralError("cannot make a task: that needs a repository", "coral init --from PATH")
    folder = Path(args.folder or ".")
    make(folder)
    print(json.dumps({"task": str((folder / TASK_FILE).resolve())}) if args.json else _summary(folder))
    return 0


def _from(args: argparse.Namespace) -> int:
    from coral.importing.repository import look, propose
    from coral.importing.written_task import write_task

    source = expanded(args.source)
    repository = look(source)
    interactive = not (args.yes or args.json) and sys.stdin.isatty() and sys.stderr.isatty()
    chosen = _chosen(repository, args, interactive=interactive)
    larger = args.maximize or bool(
        interactive and chosen.command and _answer("Is a larger number better? [y/N] ") in ("y", "yes")
    )
    objective = args.objective or (_answer("What should agents improve? (Enter: as proposed) ") if interactive else "")
    beside = source.resolve() if Path.cwd().is_relative_to(source.resolve()) else Path.cwd() / source.resolve().name
    folder = Path(args.folder) if args.folder else beside.with_name(f"{beside.name}-task")
    made = propose(repository, chosen, folder, larger=larger, objective=objective)
    write_task(made, folder)
    if args.json:
        print(json.dumps({"task": str((folder / TASK_FILE).resolve()), "report": made.report}))
        return 0
    better = f"; {'larger' if larger else 'smaller'} is better" if chosen.command else ""
    print(f"Made a task in {folder}. The score is {chosen.text}{better}.")
    for line in made.report:
        print(f"  {line}")
    print(f"Read its task.yaml and grade.py, then: coral validate {shlex.quote(str(folder))}")
    return 0


def _chosen(repository: Repository, args: argparse.Namespace, *, interactive: bool) -> Proposal:
    """Return how the repository is graded: as the options say, as the user chooses, or as is proposed first."""
    from coral.importing.repository import Proposal

    if args.command:
        return Proposal(f"the number that `{args.command}` prints", args.command)
    proposals = [proposal for proposal in repository.proposals() if not (args.tests and proposal.command)]
    if not proposals:
        what = "tests" if args.tests else "tests and no benchmark"
        hint = "name what prints the score: --command 'python bench.py'"
        raise CoralError(f"cannot propose a grader for {repository.folder}: no {what} were found", hint)
    if not interactive or len(proposals) == 1:
        return proposals[0]
    print("How should attempts be scored?", file=sys.stderr)
    for number, proposal in enumerate(proposals, 1):
        print(f"  {number}  {proposal.text}", file=sys.stderr)
    answer = _answer("[1] ") or "1"
    if not answer.isdecimal() or not 1 <= int(answer) <= len(proposals):
        raise CoralError(f"cannot take {answer!r}: there are 1 to {len(proposals)}", "start again")
    return proposals[int(answer) - 1]


def _answer(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()


def make(folder: Path) -> None:
    """Write the task into the folder; nothing if one of its files exists already, but for `.gitignore`, which is
    kept."""
    name = folder.absolute().resolve().name or "task"
    files = dict(_files(name if any(c.isascii() and c.isalnum() for c in name) else "task"))
    present = sorted(str(path) for path in files if (folder / path).exists() or (folder / path).is_symlink())
    if present == [".gitignore"]:
        del files[Path(".gitignore")]  # the user's own is kept
    elif present:
        exist = f"{', '.join(present)} exist{'s' * (len(present) == 1)} already"
        hint = "name a folder that has nothing of a task yet: coral init DIR"
        raise CoralError(f"cannot make a task in {folder}: {exist}", hint)
    try:
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with (folder / path).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise CoralError(f"cannot make a task in {folder}: {error.strerror}", "name a folder you may write") from error


def _files(name: str) -> Iterator[tuple[Path, str]]:
    """Yield (path in the new task, text) for each file to write."""
    for source in sorted(path for path in TEMPLATE.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        path = source.relative_to(TEMPLATE)
        text = source.read_text(encoding="utf-8").replace("@NAME@", quoted(name))
        yield path.with_name(HIDDEN.get(path.name, path.name)), text
    yield Path(SHIPPED.name), SHIPPED.read_text(encoding="utf-8")


def _summary(folder: Path) -> str:
    enter = [] if folder.resolve() == Path.cwd() else [f"  cd {shlex.quote(str(folder))}"]
    lines = [
        f"Made a task in {folder}: it fits a curve to measurements, and it works as it is.",
        "",
        "  task.yaml     what agents are told, how they are graded, when to stop",
        "  grade.py      the grader, with hidden.json, which agents never see",
        "  seed/         where every agent starts: model.json to improve, check.py to try it out",
        "",
        "Next:",
        *enter,
        "  coral validate      # check it, and grade the seed",
        "  coral start         # run two agents on it for three minutes, and watch",
    ]
    return "\n".join(lines)
