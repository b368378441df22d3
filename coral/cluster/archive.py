"""Folders as archives: the same files give the same bytes, whenever and in whatever order they were made."""

import hashlib
import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

_NOT_PACKED = frozenset({"__pycache__", ".git"})
_MADE = 315_619_200  # of every file, in 1980: an older one cannot be in a zip


def pack(sources: Mapping[str, Path]) -> bytes:
    """The files and folders, by their names in the archive. What is neither, nor a link, is left out."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, source in sorted(sources.items()):
            for path in (source, *sorted(_below(source))):
                _add(archive, path, name if path == source else f"{name}/{path.relative_to(source)}")
    return file.getvalue()


def _below(folder: Path) -> Iterable[Path]:
    if folder.is_dir() and not folder.is_symlink():
        for path in folder.iterdir():
            if path.name not in _NOT_PACKED:
                yield path
                yield from _below(path)


def _add(archive: tarfile.TarFile, path: Path, name: str) -> None:
    info = archive.gettarinfo(str(path), name)
    if info is None or not (info.isfile() or info.isdir() or info.issym() or info.islnk()):
        return
    info.uid = info.gid = 0
    info.mtime = _MADE
    info.uname = info.gname = ""
    if info.islnk():  # a second name of one file: a file of its own
        info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
    if info.isfile():
        with path.open("rb") as file:
            archive.addfile(info, file)
    else:
        archive.addfile(info)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
