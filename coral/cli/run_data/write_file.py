"""Writes a file that the user named: whole or not at all, and over another only if the user says so."""

import os
from pathlib import Path

from coral.errors import CoralError


def write_result(target: Path, data: bytes, *, force: bool) -> None:
    """CoralError where it exists and is not to be replaced, or cannot be written."""
    if target.exists() and not force:
        raise CoralError(f"cannot write {target}: it exists", "name another file, or add --force")
    beside = target.with_name(f".{target.name}.{os.getpid()}.partial")
    try:
        beside.write_bytes(data)
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CoralError(f"cannot write {target}: {error.strerror}", "name another file: -o FILE") from None
