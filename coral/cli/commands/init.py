"""`coral init`: make a small task that works as it is, with comments that explain it. Nothing is overwritten."""

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from coral.config.load import TASK_FILE, quoted
from coral.config.schema import SHIPPED
from coral.errors import CoralError

TEMPLATE = Path(__file__).parents[2] / "templates" / "task"
HIDDEN = {"gitignore": ".gitignore"}  # kept under other names, or git would obey them in our own repository


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="where to make it (default: here)")
    parser.add_argument("--json", action="store_true", help="for programs: task, its file")


def run(args: argparse.Namespace) -> int:
    folder = Path(args.folder)
    make(folder)
    print(json.dumps({"task": str((folder / TASK_FILE).resolve())}) if args.json else _summary(folder))
    return 0


def make(folder: Path) -> None:
    """Write the task into the folder, all of it or, where a file of it exists already, nothing."""
    name = folder.absolute().resolve().name or "task"
    files = dict(_files(name if any(c.isascii() and c.isalnum() for c in name) else "task"))
    present = sorted(str(path) for path in files if (folder / path).exists() or (folder / path).is_symlink())
    if present == [".gitignore"]:
        del files[Path(".gitignore")]  # a repository has one; it is the user's
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
    """What to write: the path in the new task, and its text."""
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
