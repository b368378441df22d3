"""Files of a test: written from their texts, or imported."""

from collections.abc import Mapping
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
