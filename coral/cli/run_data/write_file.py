"""Writes a file that the user named: the whole of it or nothing, and over an existing file only if the user says so."""

import os
from pathlib import Path

from coral.errors import CoralError


def write_result(target: Path, data: bytes, *, force: bool) -> None:
    """Write the file. CoralError if it exists and `force` is not given, or if it cannot be written."""
    if target.exists() and not force:
        raise CoralError(f"cannot write {target}: it exists", "name another file, or add --force")
    beside = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        beside.write_bytes(data)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CoralError(f"cannot write {target}: {error.strerror}", "name another file: -o FILE") from None
