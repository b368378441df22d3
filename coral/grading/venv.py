"""Makes the virtual environment that `grader.setup` asks for: once for a run, beside the grader's own files.

What the commands install stays as it was: they run in a copy of the task's folder, to which an editable install then
leads. The environment has of Coral what graders import, as the distribution `coral`: graders of the other CORAL depend
on that, and on the package index it is another project.
"""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from coral.config.load import Config
from coral.errors import CoralError
from coral.grader.remove_tree import remove_tree
from coral.grading.parts import PACKAGE, PARTS
from coral.processes import environment
from coral.processes.command import run_command
from workspace.plain_file import read_plain

VENV, SOURCES, DONE = "venv", "sources", "done"
_LONGEST_PATH = 4096  # bytes
_VERSION = "99.0"  # of the distribution: graders ask for at least some version
_METADATA = f"Metadata-Version: 2.1\nName: coral\nVersion: {_VERSION}\nSummary: What graders import of Coral.\n"
_JUNK = frozenset({"__pycache__", ".git", ".venv", "runs", "results", "node_modules"})
_UV_PIP = re.compile(r"\buv pip\b(?! (?:compile|sync|tree))")


def make(config: Config, folder: Path, say: Callable[[str], None] = lambda _: None) -> Path | None:
    """Return the grader's environment below `folder`, and make it unless it is there for the same sources; None for a
    task without `grader.setup`. `say`: takes the name of the step. CoralError says which command failed. Blocks, for
    minutes perhaps."""
    if not config.grader.setup:
        return None
    top, copies = _copies(config)
    place = folder.resolve() / _digest(config, copies)[:16]
    if (place / DONE).is_file():
        return place / VENV
    say("setting up the grader's environment")
    try:
        remove_tree(place)
        place.mkdir(mode=0o700, parents=True)
        for target, source in copies.items():
            _copy(config, source, place / SOURCES / target)
        _run([sys.executable, "-m", "venv", str(place / VENV)], place, {}, "python -m venv")
        _install_coral(place / VENV)
        at = place / SOURCES / config.folder.resolve().relative_to(top)
        for command in config.grader.setup:
            _run(["/bin/sh", "-c", _without_uv(command)], at, _variables(place / VENV), command)
        _install_coral(place / VENV)  # again: a command may have put another in its place
        (place / DONE).touch()
    except OSError as error:
        raise CoralError(f"cannot make the grader's environment: {error}", "see grader.setup in task.yaml") from error
    return place / VENV


def note(private: Path, venv: Path | None) -> None:
    """Record, beside the folder `private` of a grader's files, where the environment of the grader is."""
    if venv is not None:
        note_of(private).write_text(f"{venv}\n", encoding="utf-8")


def venv_of(private: Path) -> Path | None:
    """Return the environment of the grader whose files are in `private`; None if it has that of Coral."""
    found = read_plain(note_of(private), _LONGEST_PATH)
    return Path(os.fsdecode(found).strip()) if found else None


def variables(venv: Path | None) -> dict[str, str]:
    """Return the variables by which the programs that a grader starts find its environment."""
    if venv is None:
        return {}
    return {"VIRTUAL_ENV": str(venv), "PATH": os.pathsep.join((str(venv / "bin"), os.environ.get("PATH", os.defpath)))}


def note_of(private: Path) -> Path:
    """Return the file that names the environment of the grader whose files are in `private`."""
    return private.with_name(f"{private.name}.venv")


def _variables(venv: Path) -> dict[str, str]:
    """Return the variables of the commands, without those that lead a Python elsewhere."""
    kept = {name: value for name, value in environment.base().items() if not name.startswith("PYTHON")}
    return {**kept, **variables(venv)}


def _copies(config: Config) -> tuple[Path, dict[Path, Path]]:
    """Return the folder around all that the commands need, and the folders that they need, by their place in the copy:
    the task's, and those beside or around it that a command names by `../`."""
    folder = config.folder.resolve()
    named = [folder, *folders_beside(config.grader.setup, folder).values()]
    top = Path(os.path.commonpath(named))
    outer = [path for path in named if not any(path != other and path.is_relative_to(other) for other in named)]
    return top, {path.relative_to(top): path for path in outer}


def folders_beside(commands: tuple[str, ...], folder: Path) -> dict[str, Path]:
    """Return the folders outside a task's folder that commands name by `../`, by the name as it is written."""
    found = {}
    for word in _words(commands):
        path = (folder / word).resolve()
        if ".." in Path(word).parts and path.is_dir() and not Path.home().is_relative_to(path):
            found[word] = path
    return found


def _words(commands: tuple[str, ...]) -> Iterator[str]:
    for command in commands:
        try:
            words = shlex.split(command)
        except ValueError:  # a quote without its end: the shell will say so
            words = command.split()
        for word in words:
            yield word.partition("[")[0].rpartition("=")[2]  # --editable=../grader[extra]


def _copy(config: Config, source: Path, target: Path) -> None:
    """Copy a folder without the seed, which agents get, and without runs."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if _is_ignored(config, Path(folder, name))}

    shutil.copytree(source, target, ignore=ignored, ignore_dangling_symlinks=True, dirs_exist_ok=True)


def _is_ignored(config: Config, path: Path) -> bool:
    runs = config.folder / config.workspace.runs
    return path.name in _JUNK or path.resolve() in (config.seed.resolve(), runs.resolve())


def _digest(config: Config, copies: dict[Path, Path]) -> str:
    """Return a hash of the commands, of this Python and of all files that the copies would have."""
    digest = hashlib.sha256(repr((config.grader.setup, sys.version, _VERSION)).encode())
    for name in PARTS:
        digest.update((PACKAGE / name).read_bytes())
    for target, source in sorted(copies.items()):
        for root, folders, files in os.walk(source):
            folders[:] = sorted(name for name in folders if not _is_ignored(config, Path(root, name)))
            for path in (Path(root, name) for name in sorted(files)):
                digest.update(f"\0{target}/{path.relative_to(source)}\0".encode("utf-8", "surrogateescape"))
                with contextlib.suppress(OSError), path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _install_coral(venv: Path) -> None:
    packages = next((venv / "lib").glob("python3*/site-packages"))
    for name in PARTS:
        (packages / "coral" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(PACKAGE / name, packages / "coral" / name)
    for other in packages.glob("coral-*.dist-info"):
        shutil.rmtree(other)
    about = packages / f"coral-{_VERSION}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(_METADATA, encoding="utf-8")
    (about / "INSTALLER").write_text("coral\n", encoding="utf-8")


def _without_uv(command: str) -> str:
    """Return the command as it stands; if uv is not installed, with the pip of the environment instead."""
    return command if shutil.which("uv") else _UV_PIP.sub("python -m pip", command)


def _run(argv: list[str], folder: Path, env: dict[str, str], shown: str) -> None:
    """Run a command of the task's author. CoralError if it fails."""
    code, output = run_command(argv, folder, env or environment.base())
    if code != 0:
        raise CoralError(f"cannot set up the grader: `{shown}` ended with exit code {code}", output)
