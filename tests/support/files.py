"""Files and folders of a test: written from their texts, imported, or deep; open files that are left."""

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType


def load_module(path: Path) -> ModuleType:
    """Import a file that is in no package, and leave nothing beside it."""
    found = ModuleType(path.stem)
    found.__file__ = str(path)
    exec(compile(path.read_text(), str(path), "exec"), vars(found))
    return found


def write_files(folder: Path, files: Mapping[str, str]) -> Path:
    """Write each text at its place below the folder; what begins as a script can be executed."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if text.startswith("#!"):
            path.chmod(0o755)
    return folder


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    """Assert that this process has no other descriptors open afterwards. A thread of an earlier test may close some
    meanwhile."""
    before = _opened()
    yield
    left = _opened().items() - before.items()
    assert not left, left


def _opened() -> dict[str, str]:
    """Return what each open descriptor of this process refers to."""
    gc.collect()  # closes now, and not later, what nobody uses
    found = {}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing is closed by now
            found[link.name] = str(link.readlink())
    return found


def deep_folder(folder: Path) -> None:
    """Make a folder with more levels than functions of Python may call themselves."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        here, above = os.open("d", os.O_RDONLY, dir_fd=here), here
        os.close(above)
    os.close(here)
