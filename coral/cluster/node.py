"""Grades on a worker of the cluster: fetches what the node lacks, unpacks it, has a guard run the grader, and reports
the output and the beats of the grade while it runs.

Ray sends this module to the nodes by value, for they have no Coral: it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import marshal
import os
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import MAGIC_NUMBER, source_hash
from itertools import islice
from pathlib import Path
from typing import Any

from coral.cluster import spare_guard
from coral.cluster.archive import Entry, entries, unpack
from coral.cluster.guard_protocol import GUARD, kill_marked
from coral.cluster.spare_guard import COMPILED, KIT, read, remove_folder
from coral.cluster.spread_folders import spread_folders

SHORT_SECONDS = 0.02  # a grade that takes no longer sends its begin together with its end
POLL_SECONDS = 0.05
LEAST_BYTES = 8 << 20  # free bytes of its disk below which a grade that failed counts as lost
KEPT_SECONDS = 3 * 86400.0  # for which a node keeps an archive that no grade uses
KEPT_BYTES = 2 << 30  # of archives that a node keeps beside those of the grade that begins
UNFINISHED = "unfinished-"  # how the name of an archive begins while it is written
END_SECONDS = 5.0  # for processes that were killed to be gone
OUTPUT = 10 << 20  # bytes of one stream that are sent while the grade runs; of a longer one, the end is sent later
TAIL = 20_000
ARTIFACT_BYTES, MOST_ARTIFACTS = 10 << 20, 100
# Modules that every Python grader imports, and what most of them import of Coral.
_COMMON = (
    *(f"coral/{name}.py" for name in ("__init__", "types", "grader/__init__", "grading/__init__")),
    *(f"coral/grading/{name}.py" for name in ("finite_score", "foreign_code", "handover", "runner")),
)
_kits: dict[str, dict[str, bytes]] = {}  # by the hash of the archive; one at most
MOST_NAMES = 1000  # that are read of a folder of artifacts: a candidate may have made millions


def grade(
    order: dict[str, Any],
    checkout: bytes,
    fetch: Callable[[str], bytes],
    tell: Callable[[dict[str, Any]], None],
    *,
    is_last: bool = True,
) -> None:
    """Run a grade. `order`: see `coral.grading.remote`; `checkout`: the candidate's files, as an archive of what its
    base, if the order has one, lacks; `fetch`: returns the archive with a hash; `tell`: receives each event, `ended`
    in the last one; `is_last`: whether this worker runs no other grade."""
    base = _base()
    _sweep(base / "grades")  # before anything is written: what a killed guard has left may fill the disk
    _remove_unused(base)
    _remove_excess(base / "archives", {order["archive"], order["base"]})
    archive = _kept(base / "archives", order["archive"], fetch)
    start, kit = spare_guard.start_of(_with_variables(order)), _kit(order["archive"], archive)
    guard = spare_guard.take(start, kit) or spare_guard.start_guard(base / "grades", start, kit)
    try:
        guard.hold()
        kept = _kept(base / "archives", order["base"], fetch) if order["base"] else b""
        unpack(_files(order, archive, kept, checkout), guard.place)
        for name in ("tmp", "artifacts"):
            (guard.place / name).mkdir()
        guard.begin(_placed(order, guard.place))
        started = {"started": "", "pid": os.getpid()}
        if not guard.is_done(SHORT_SECONDS):
            tell(started)
            started = {}
        streams = _Streams(order, guard.place)
        while not guard.is_done(POLL_SECONDS):
            if news := streams.news():
                tell(news)
        if (status := guard.status()) is None:
            why = guard.errors()
            _end_unguarded(guard.place)
            raise RuntimeError(f"the guard of the grade has ended: {why}")
        if "problem" in status:
            raise RuntimeError(f"the guard of the grade cannot run it: {status['problem']}")
        if status["code"] != 0 and (free := shutil.disk_usage(base / "grades").free) < LEAST_BYTES:
            raise OSError(errno.ENOSPC, f"the grader failed, and its disk has {free} bytes free: that may be the cause")
        ended = {**status, "artifacts": _artifacts(guard.place)}
        tell({**started, **streams.news(), **streams.ends(), "ended": ended})
    finally:
        guard.close()
    if not is_last:
        spare_guard.put(spare_guard.start_guard(base / "grades", start, kit))


def own_folder() -> Path:
    """Return the folder of this user's on the node. PermissionError if somebody else has made it or can write to it."""
    base = Path(tempfile.gettempdir(), f"coral-{os.getuid()}")
    base.mkdir(mode=0o700, exist_ok=True)
    state = base.lstat()
    if state.st_uid != os.getuid() or state.st_mode & 0o40777 != 0o40700:
        raise PermissionError(f"{base} is not a folder of this user's alone")
    return base


def _base() -> Path:
    base = own_folder() / socket.gethostname()  # nodes may share the folder for temporary files
    for name in ("grades", "archives"):
        (base / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    spread_folders(base / "grades")
    return base


def discard(archives: Iterable[str]) -> None:
    """Remove archives that the node keeps, by their hashes."""
    for sha in archives:
        (_base() / "archives" / sha).unlink(missing_ok=True)


def _remove_unused(base: Path) -> None:
    """Remove the archives that no grade has used for long, and what workers left that were killed before a guard was
    there to remove it."""
    oldest = time.time() - KEPT_SECONDS
    for path in (*(base / "archives").iterdir(), *(base / "grades").iterdir()):
        with contextlib.suppress(OSError):  # another worker has removed it
            if path.stat().st_mtime < oldest and not (path / "guard.json").exists():
                remove_folder(path) if path.is_dir() else path.unlink()


def _remove_excess(archives: Path, needed: Collection[str]) -> None:
    """Remove the archives that were used longest ago, until there are KEPT_BYTES beside those that are `needed`, by
    their hashes."""
    others = []
    for path in archives.iterdir():
        with contextlib.suppress(OSError):  # another worker has removed it
            if path.name not in needed and not path.name.startswith(UNFINISHED):
                state = path.stat()
                others.append((state.st_mtime_ns, state.st_size, path))
    size = 0
    for _, own, path in sorted(others, reverse=True):
        size += own
        if size > KEPT_BYTES:
            path.unlink(missing_ok=True)


def _kept(folder: Path, sha: str, fetch: Callable[[str], bytes]) -> bytes:
    """Return the archive with this hash. The node keeps it in `folder`: it is fetched once, and again if the file was
    changed."""
    with contextlib.suppress(OSError):
        data = (folder / sha).read_bytes()
        if hashlib.sha256(data).hexdigest() == sha:
            os.utime(folder / sha)
            return data
    data = fetch(sha)
    handle, unfinished = tempfile.mkstemp(prefix=UNFINISHED, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(unfinished).replace(folder / sha)
    except BaseException:  # the disk is full: a part of it would keep it so for days
        Path(unfinished).unlink(missing_ok=True)
        raise
    return data


def _files(order: dict[str, Any], archive: bytes, base: bytes, checkout: bytes) -> Iterator[Entry]:
    """Yield the files of a grade: those of the grader, those of the base that the checkout has unchanged, and those
    that the checkout has changed or added."""
    yield from (entry for entry in entries(archive) if not entry.name.startswith(f"{KIT}/"))
    changes = entries(checkout)
    if base:
        replaced = {*order["removed"], *(entry.name for entry in changes)}
        yield from (entry for entry in entries(base) if entry.name not in replaced)
    yield from changes


def _kit(sha: str, data: bytes) -> dict[str, bytes]:
    """Return the modules of Coral that an archive with this hash has, by their path below its folder KIT, with those
    that all graders import compiled: to compile them takes longer than a small grade."""
    if sha not in _kits:
        _kits.clear()
        modules = {
            entry.name.removeprefix(f"{KIT}/"): bytes(entry.content)
            for entry in entries(data)
            if entry.name.startswith(f"{KIT}/")
        }
        _kits[sha] = {**modules, **dict(_compiled(name, modules[name]) for name in _COMMON if name in modules)}
    return _kits[sha]


def _compiled(name: str, source: bytes) -> tuple[str, bytes]:
    """Return the path and the content of a compiled module that Python takes without a look at the source (PEP 552)."""
    folder, _, file = name.rpartition("/")
    flags = (1).to_bytes(4, "little")  # by the hash of the source, which is not checked
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True, optimize=0))
    path = f"{folder}/{COMPILED}/{file.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc"
    return path, MAGIC_NUMBER + flags + source_hash(source) + code


def _placed(order: dict[str, Any], place: Path) -> dict[str, Any]:
    """Return the order with folders of this node in place of the supervisor's. The grader's own arguments stay as
    given."""
    moves = [(source, str(place / name)) for name, source in order["places"].items()]
    moves.sort(key=lambda move: -len(move[0]))  # the checkout lies in the grade's folder

    def moved(text: str) -> str:
        for source, target in moves:
            text = text.replace(source, target)
        return text

    spec = order["spec"]
    if spec is not None:
        spec = {**spec, **{name: moved(spec[name]) for name in ("entry", "workspace", "private", "result")}}
    env = {name: moved(value) for name, value in _with_variables(order)["env"].items()}
    env["CORAL_GRADE"] = str(place)
    argv = [moved(word) for word in order["argv"]]
    return {**order, "spec": spec, "env": env, "argv": argv, "cwd": moved(order["cwd"])}


def _with_variables(order: dict[str, Any]) -> dict[str, Any]:
    """Return the order with what a grade gets of the node's environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in order["kept"] or name.startswith(tuple(order["prefixes"]))
    }
    for name in ("PYTHONUNBUFFERED", "PYTHONBREAKPOINT"):  # Ray's own
        kept.pop(name, None)
    env = {**kept, **order["env"]}
    env.setdefault("CUDA_VISIBLE_DEVICES", "")  # Ray leaves it out for a grade without one, which then sees all
    return {**order, "env": env}


class _Streams:
    """Reads the files that a grade writes while it runs: each time, what was added since the last."""

    def __init__(self, order: dict[str, Any], place: Path) -> None:
        names = (*order["streams"], order["beats"])
        self._files = {name: (place / name, 0) for name in names}

    def news(self) -> dict[str, Any]:
        added = {}
        for name, (path, offset) in self._files.items():
            if offset < OUTPUT and (data := read(path, offset, OUTPUT - offset)):
                added[name] = data
                self._files[name] = (path, offset + len(data))
        return {"output": added} if added else {}

    def ends(self) -> dict[str, Any]:
        """Return the last bytes of each stream that was too long to be sent whole."""
        tails = {}
        for name, (path, offset) in self._files.items():
            with contextlib.suppress(OSError):  # a candidate has removed it: that must not lose the result
                if offset >= OUTPUT and (size := path.stat().st_size) > offset:
                    tails[name] = b"\n[cut]\n" + read(path, max(offset, size - TAIL), TAIL)
        return {"tails": tails} if tails else {}


def _artifacts(place: Path) -> dict[str, bytes]:
    """Read the plain files of a grade's folder `artifacts`, up to the number and size that a record keeps. A candidate
    may have put a link to another folder in its place: it is not followed."""
    kept: dict[str, bytes] = {}
    left = ARTIFACT_BYTES
    with contextlib.suppress(OSError):
        folder = os.open(place / "artifacts", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.scandir(folder) as listed:
                names = sorted(entry.name for entry in islice(listed, MOST_NAMES))
            for name in names:
                data = None if name.startswith(".") or len(kept) == MOST_ARTIFACTS else _plain(name, left + 1, folder)
                if data is not None and len(data) <= left:
                    kept[name] = data
                    left -= len(data)
        finally:
            os.close(folder)
    return kept


def _plain(name: str, most: int, folder: int) -> bytes | None:
    """Return the first `most` bytes of a regular file in the folder with this descriptor; None if there is none."""
    with contextlib.suppress(OSError):
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            found = os.fstat(handle)
            return os.read(handle, min(found.st_size, most)) if stat.S_ISREG(found.st_mode) else None
        finally:
            os.close(handle)
    return None


def _sweep(grades: Path) -> None:
    """End the grades whose guard was killed. Whatever a candidate has made of a folder, other grades run."""
    for place in grades.iterdir():
        with contextlib.suppress(OSError):
            try:
                has_begun = (place / GUARD).exists()  # without the file, its guard has not begun
            except PermissionError:  # it took away the right to look into it
                place.chmod(0o700)
                has_begun = (place / GUARD).exists()
            if has_begun and not _is_guarded(place):
                _end_unguarded(place)


def _is_guarded(place: Path) -> bool:
    try:
        guard = json.loads(read(place / GUARD, 0, 1000))
        return bool(started_at(int(guard["pid"])) == guard["started"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):  # a candidate wrote it
        return False


def _end_unguarded(place: Path) -> None:
    """Kill the processes that are left of a grade, once its guard is gone, and remove its folder."""
    until = time.monotonic() + END_SECONDS
    while _is_guarded(place) and time.monotonic() < until:  # it has closed its files, and is about to end
        time.sleep(0.005)
    # Again after one was found: a process that was just beginning a program had no variables.
    while kill_marked(place, f"CORAL_GRADE={place}".encode()) and time.monotonic() < until:
        pass
    remove_folder(place)


def started_at(pid: int) -> str:
    """Return when a process has begun, in ticks of the kernel since the boot; "" if there is none, or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
