"""`coral examples`: lists the tasks that come with Coral; `copy` copies one of them into a folder of the user's."""

import argparse
import shlex
import shutil
from pathlib import Path

from coral.cli.parser import Parser, print_json
from coral.cli.ui.table import print_table
from coral.config.load import TASK_FILE
from coral.config.schema import SHIPPED
from coral.errors import CoralError

# In an installation the examples are in this package; in a clone of the repository, beside it.
PLACES = (Path(__file__).parents[2] / "examples", Path(__file__).parents[3] / "examples")
LEFT_OUT = shutil.ignore_patterns("runs", "__pycache__")
IN_A_CLONE = f"../../coral/config/{SHIPPED.name}"  # the path of the schema in a clone


def add_arguments(parser: Parser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs: name, about, folder")
    copy = parser.verbs().add_parser(
        "copy", help="copy an example to a folder of yours", example="min_max_distance my-points"
    )
    copy.add_argument("name", metavar="NAME", help="as `coral examples` lists it")
    copy.add_argument("folder", nargs="?", metavar="DIR", help="a folder that is not there yet (default: NAME)")
    copy.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help="for programs: task, the file of the copy"
    )


def run(args: argparse.Namespace) -> int:
    if args.verb == "copy":
        return _copy(args.name, Path(args.folder or args.name), as_json=args.json)
    found = [(folder, *_about(folder)) for folder in folders()]
    if args.json:
        return print_json([{"name": path.name, "about": text, "folder": str(path)} for path, _, text in found])
    print_table(("example", "about*"), [[folder.name, text] for folder, _, text in found])
    print("\n`coral examples copy NAME` makes one yours; its README.md says what is in reach, and what a fleet found")
    return 0


def folders() -> list[Path]:
    """Return the folders of the examples, sorted."""
    return sorted(path.parent for place in PLACES for path in place.glob(f"*/{TASK_FILE}"))


def _about(folder: Path) -> tuple[str, str]:
    """Return the title and the first sentence of an example's README."""
    title, _, rest = (folder / "README.md").read_text(encoding="utf-8").partition("\n")
    paragraph = " ".join(rest.strip().partition("\n\n")[0].split())
    return title.lstrip("# "), paragraph.partition(". ")[0].removesuffix(".") + "."


def _copy(name: str, folder: Path, *, as_json: bool) -> int:
    found = next((path for path in folders() if path.name == name), None)
    if found is None:
        names = ", ".join(path.name for path in folders())
        raise CoralError(f"cannot copy {name!r}: there is no such example", f"there are {names}")
    _write(found, folder)
    if as_json:
        return print_json({"task": str((folder / TASK_FILE).resolve())})
    task = shlex.quote(str(folder))
    lines = (f"{folder}: {_about(found)[0].lower()}; see {folder}/README.md. Next:", "", f"  coral validate {task}")
    print("\n".join((*lines, f"  coral start {task}")))
    return 0


def _write(source: Path, folder: Path) -> None:
    """Copy an example, all of it or nothing. The copy gets the schema, by which an editor checks task.yaml."""
    try:
        shutil.copytree(source, folder, ignore=LEFT_OUT, copy_function=shutil.copyfile)
    except FileExistsError:
        hint = f"name another folder: coral examples copy {source.name} DIR"
        raise CoralError(f"cannot copy {source.name} to {folder}: that is there already", hint) from None
    except OSError as error:  # copytree raises one error with a list of all failures
        shutil.rmtree(folder, ignore_errors=True)
        why = error.strerror or "some files cannot be written"
        raise CoralError(f"cannot copy {source.name} to {folder}: {why}", "name a folder you may write") from error
    task = folder / TASK_FILE
    task.write_text(task.read_text(encoding="utf-8").replace(IN_A_CLONE, SHIPPED.name), encoding="utf-8")
    shutil.copyfile(SHIPPED, folder / SHIPPED.name)
