"""What a grade needs on a node, as archives: the grader's files with what of Coral runs them, and the checkout."""

import threading
from pathlib import Path
from typing import Any

from coral.cluster.archive import digest, pack

_HERE = Path(__file__).resolve().parents[1]
# As `coral.grading.venv` gives a grader's environment, and the guard.
_KIT: tuple[str, ...] = (
    "__init__.py",
    "types.py",
    "grading/__init__.py",
    "grading/runner.py",
    "grading/finite_score.py",
)
_KIT += ("grading/foreign_code.py", "processes/__init__.py", "processes/result_channel.py")
_KIT += ("cluster/__init__.py", "cluster/guard.py")


class Shipping:
    def __init__(self) -> None:
        self._packed: dict[Path, tuple[object, str, bytes]] = {}
        self._lock = threading.Lock()

    def archive(self, private: Path) -> tuple[str, bytes]:
        """The files of a grader, and the name of their contents. They are packed again when one of them has changed."""
        with self._lock:
            state = _state(private)
            if private not in self._packed or self._packed[private][0] != state:
                data = pack(_sources(private))
                self._packed[private] = state, digest(data), data
            _, sha, data = self._packed[private]
            return sha, data

    def checkout(self, order: dict[str, Any]) -> bytes:
        return pack({"candidate": Path(order["places"]["candidate"])})


def _sources(private: Path) -> dict[str, Path]:
    names = [*_KIT, *(f"grader/{path.name}" for path in sorted((_HERE / "grader").glob("*.py")))]
    sources = {f"kit/coral/{name}": _HERE / name for name in names}
    listed = private.with_name(f"{private.name}.files.json")
    return {**sources, "private": private, **({"private.files.json": listed} if listed.exists() else {})}


def _state(folder: Path) -> list[tuple[str, int, int, int, int]]:
    """What changes when a file does."""
    found = []
    for path in sorted((folder, *folder.rglob("*"))):
        status = path.lstat()
        found.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found
