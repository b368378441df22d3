"""Grades on a worker of the cluster: fetches what the node lacks, unpacks it, has a guard run the grader, and reports
the output and the beats of the grade while it runs.

Ray sends this module to the nodes by value, for they have no Coral: it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import platform
import select
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.05
OUTPUT = 10 << 20  # bytes of one stream that are sent while the grade runs; of a longer one, the end is sent later
TAIL = 20_000
ARTIFACT_BYTES, MOST_ARTIFACTS = 10 << 20, 100
_GUARD = "import sys; sys.path.insert(0, sys.argv[1]); from coral.cluster.guard import main; main(sys.argv[2], *map(int, sys.argv[3:]))"  # noqa: E501


def grade(
    order: dict[str, Any], checkout: bytes, fetch: Callable[[], bytes], tell: Callable[[dict[str, Any]], None]
) -> None:
    """Run a grade. `order`: see `coral.grading.remote`; `checkout`: the candidate's files, as an archive; `fetch`:
    returns the archive of the grader's files; `tell`: receives each event, `ended` last."""
    base = _base()
    _sweep(base / "grades")
    place = Path(tempfile.mkdtemp(prefix=f"{order['attempt']}-", dir=base / "grades"))
    try:
        _unpack(_kept(base / "archives", order["archive"], fetch), place)
        _unpack(checkout, place)
        for name in ("tmp", "artifacts"):
            (place / name).mkdir()
        (place / "order.json").write_text(json.dumps(_placed(order, place)), encoding="utf-8")
        _guarded(order, place, tell)
    except BaseException:
        if not (place / "guard.json").exists():  # else the guard removes the folder, once it has ended all processes
            shutil.rmtree(place, ignore_errors=True)
        raise


def described() -> dict[str, Any]:
    """Return what the node has: its version of Python, and the free bytes of the disk that grades are unpacked on."""
    base = _base()
    return {"python": platform.python_version(), "folder": str(base), "disk": shutil.disk_usage(base).free}


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
    return base


def _kept(folder: Path, sha: str, fetch: Callable[[], bytes]) -> bytes:
    """Return the archive with this hash. The node keeps it in `folder`: it is fetched once, and again if the file was
    changed."""
    with contextlib.suppress(OSError):
        data = (folder / sha).read_bytes()
        if hashlib.sha256(data).hexdigest() == sha:
            return data
    data = fetch()
    handle, unfinished = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    Path(unfinished).replace(folder / sha)
    return data


def _unpack(data: bytes, folder: Path) -> None:
    """Unpack an archive into a folder. Links in it may lead outside, as they may in the grader's folder and in a
    checkout on the supervisor's machine; names may not."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive.getmembers():
            if Path(member.name).is_absolute() or ".." in Path(member.name).parts:
                raise ValueError(f"the archive has {member.name}")
        # Links last: nothing is then written through one.
        members = sorted(archive.getmembers(), key=lambda member: member.issym())
        archive.extractall(folder, members, filter="fully_trusted")


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
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in order["kept"] or name.startswith(tuple(order["prefixes"]))
    }
    for name in ("PYTHONUNBUFFERED", "PYTHONBREAKPOINT"):  # Ray's own
        kept.pop(name, None)
    env = {**kept, **{name: moved(value) for name, value in order["env"].items()}, "CORAL_GRADE": str(place)}
    env.setdefault("CUDA_VISIBLE_DEVICES", "")  # Ray leaves it out for a grade without one, which then sees all
    argv = [moved(word) for word in order["argv"]]
    return {**order, "spec": spec, "env": env, "argv": argv, "cwd": moved(order["cwd"])}


def _guarded(order: dict[str, Any], place: Path, tell: Callable[[dict[str, Any]], None]) -> None:
    alive_there, alive = os.pipe()
    done, done_there = os.pipe()
    try:
        line = [sys.executable, "-P", "-c", _GUARD, str(place / "kit"), str(place), str(alive_there), str(done_there)]
        with (place / "guard.err").open("ab") as errors:
            subprocess.run(
                line, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, pass_fds=(alive_there, done_there),
                env=_without_ray(), check=True,
            )  # fmt: skip
        os.close(done_there)
        done_there = -1
        tell({"started": "", "pid": os.getpid()})
        streams = _Streams(order, place)
        while not select.select([done], [], [], POLL_SECONDS)[0]:
            if news := streams.news():
                tell(news)
        if not (place / "status.json").exists():
            raise RuntimeError(f"the guard of the grade has ended: {(place / 'guard.err').read_text()[-500:]}")
        status = json.loads((place / "status.json").read_text("utf-8"))
        tell({**streams.news(), **streams.ends(), "ended": {**status, "artifacts": _artifacts(place / "artifacts")}})
    finally:
        for pipe in (alive_there, alive, done, done_there):
            if pipe >= 0:
                os.close(pipe)


def _without_ray() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}


class _Streams:
    """Reads the files that a grade writes while it runs: each time, what was added since the last."""

    def __init__(self, order: dict[str, Any], place: Path) -> None:
        names = (*order["streams"], order["beats"])
        self._files = {name: (place / name, 0) for name in names}

    def news(self) -> dict[str, Any]:
        added = {}
        for name, (path, offset) in self._files.items():
            if offset < OUTPUT and (data := _read(path, offset, OUTPUT - offset)):
                added[name] = data
                self._files[name] = (path, offset + len(data))
        return {"output": added} if added else {}

    def ends(self) -> dict[str, Any]:
        """Return the last bytes of each stream that was too long to be sent whole."""
        tails = {}
        for name, (path, offset) in self._files.items():
            if offset >= OUTPUT:
                size = path.stat().st_size
                if size > offset:
                    tails[name] = b"\n[cut]\n" + _read(path, max(offset, size - TAIL), TAIL)
        return {"tails": tails} if tails else {}


def _read(path: Path, offset: int, most: int) -> bytes:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(handle, most, offset)
        finally:
            os.close(handle)
    return b""


def _artifacts(folder: Path) -> dict[str, bytes]:
    """Read the plain files of a folder, up to the number and size that a record keeps."""
    kept: dict[str, bytes] = {}
    left = ARTIFACT_BYTES
    with contextlib.suppress(OSError):
        for path in sorted(folder.iterdir()):
            if (
                path.is_file()
                and not path.is_symlink()
                and not path.name.startswith(".")
                and len(kept) < MOST_ARTIFACTS
            ):
                data = _read(path, 0, left + 1)
                if len(data) <= left:
                    kept[path.name] = data
                    left -= len(data)
    return kept


def _sweep(grades: Path) -> None:
    """Kill the processes that are left of grades whose guard was killed, and remove the folders of these grades."""
    for place in grades.iterdir():
        try:
            guard = json.loads((place / "guard.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue  # its guard has not begun
        if started_at(guard["pid"]) == guard["started"]:
            continue
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if f"CORAL_GRADE={place}".encode() in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
        shutil.rmtree(place, ignore_errors=True)


def started_at(pid: int) -> str:
    """Return when a process has begun, in ticks of the kernel since the boot; "" if there is none, or it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]
