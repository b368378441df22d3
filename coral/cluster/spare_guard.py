"""The guards that a worker starts: each with the interpreter of a grader, before it is known which grade they will run.

To start the two takes longer than a small grade. So a worker that has run a grade starts those of the next one, and all
its guards are forks of one process, which has their modules loaded. The modules of Coral lie in a folder of that
process: to write and remove them for each grade takes longer than a small one, too. Ray sends this module to the nodes
by value, for they have no Coral: it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coral.cluster.guard_protocol import BEGUN, FRESH_SECONDS, GUARD, START, TAKEN

ERRORS, KIT, COMPILED = "guard.err", "kit", "__pycache__"
MOST_OF_A_MODULE = 1 << 20  # bytes
FORK_SECONDS = 60.0  # for a process that has forked guards before to fork another, on a machine that is overloaded
_CALL = "import sys; sys.path.insert(0, sys.argv[1]); from coral.cluster.guard_server import main; main(sys.argv[1])"
_spare: list[GradeGuard] = []
_servers: list[GuardServer] = []  # one at most


class GradeGuard:
    """A guard that waits for its order. `place`: the folder of its grade."""

    def __init__(self, grades: Path, start: Mapping[str, Any], kit: Mapping[str, bytes]) -> None:
        """Start it, with a folder in `grades`. `start`: see `start_of`; `kit`: the modules that it imports, by path."""
        self.place = Path(tempfile.mkdtemp(prefix="grade-", dir=grades))
        self._start, self._kit = start, kit
        with contextlib.ExitStack() as undo:
            undo.callback(remove_folder, self.place)
            env = {**start["env"], "CORAL_GRADE": str(self.place)}
            (self.place / START).write_text(json.dumps({**start, "env": env}), encoding="utf-8")
            self._launch(undo)
            undo.pop_all()  # nothing has failed
        self._since = time.monotonic()

    def _launch(self, undo: contextlib.ExitStack) -> None:
        with contextlib.ExitStack() as theirs:
            there, self._alive = os.pipe()
            undo.callback(os.close, self._alive)
            theirs.callback(os.close, there)
            self._done, done_there = os.pipe()
            undo.callback(os.close, self._done)
            theirs.callback(os.close, done_there)
            with (self.place / ERRORS).open("ab") as errors:
                self._server = _server(self._kit, self.place.parent, errors.fileno())
                if not self._server.fork(self.place, errors.fileno(), there, done_there):
                    raise _NotBegunError(f"the guard of the grade did not begin: {self.errors()}")

    def is_for(self, start: Mapping[str, Any], kit: Mapping[str, bytes]) -> bool:
        """Return whether it was started for such a grade, still waits and will for long, and nobody has changed its
        folder or the modules: the candidate of another grade might have."""
        if time.monotonic() > self._since + FRESH_SECONDS:
            return False
        if (self._start, self._kit) != (start, kit) or self.is_done(0):
            return False
        with contextlib.suppress(OSError, RecursionError):  # its folder is gone, or somebody made a deep one in it
            names = {path.name for path in self.place.iterdir() if not path.name.startswith(f".{GUARD}.")}
            return names <= {START, GUARD, ERRORS} and self._server.has_modules()
        return False

    def hold(self) -> None:
        """Reserve the guard for a grade: from now on it waits for its order without a time limit."""
        with contextlib.suppress(BrokenPipeError):  # it has ended: `begin` says why
            os.write(self._alive, TAKEN)

    def begin(self, order: Mapping[str, Any]) -> None:
        """Have it run a grade, whose files are in `place`."""
        line = json.dumps(order).encode() + b"\n"
        # It may have ended: then there is no status.
        with contextlib.suppress(BrokenPipeError), open(self._alive, "wb", closefd=False) as pipe:
            pipe.write(line)

    def is_done(self, seconds: float) -> bool:
        """Wait until it sends the status of the grade, or has ended; return False after `seconds`."""
        return bool(select.select([self._done], [], [], seconds)[0])

    def status(self) -> dict[str, Any] | None:
        """Return how the grade has ended, or as `problem` why it cannot run; None if the guard has ended before."""
        with open(self._done, "rb", closefd=False) as pipe:
            line = pipe.read()
        status: dict[str, Any] | None = json.loads(line) if line.endswith(b"\n") else None
        return status

    def errors(self) -> str:
        return read(self.place / ERRORS, 0, 10_000).decode("utf-8", "replace")[-500:]

    def close(self) -> None:
        """Let it end all that is left of the grade, and remove the folder."""
        os.close(self._alive)
        os.close(self._done)


class _NotBegunError(RuntimeError):
    pass


class GuardServer:
    """A child process of this worker, which forks the guard of each grade; `coral.cluster.guard_server` is its program.
    It ends when the worker ends. `modules`: the folder from which guards and graders import Coral."""

    def __init__(self, kit: Mapping[str, bytes], env: Mapping[str, str], grades: Path, errors: int) -> None:
        """Start the process, with a folder in `grades` for the modules of `kit`."""
        self._kit, self._env = kit, env
        self._place = Path(tempfile.mkdtemp(prefix="server-", dir=grades))
        self.modules = self._place / KIT
        with contextlib.ExitStack() as undo:
            undo.callback(remove_folder, self._place)
            paths = {self.modules / name: data for name, data in kit.items()}
            for folder in {self.modules, *(path.parent for path in paths)}:
                folder.mkdir(parents=True, exist_ok=True)
            for path, data in paths.items():
                path.write_bytes(data)
            there, self._socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.callback(self._socket.close)
            line = [sys.executable, "-P", "-c", _CALL, str(self.modules)]
            with there:
                self._process = subprocess.Popen(line, stdin=there.fileno(), stdout=errors, stderr=errors, env=env)
            undo.pop_all()  # nothing has failed

    def is_for(self, kit: Mapping[str, bytes], env: Mapping[str, str]) -> bool:
        return (self._kit, self._env) == (kit, env) and self._process.poll() is None and self.has_modules()

    def has_modules(self) -> bool:
        """Return whether the modules are as they were sent: a candidate might have changed them. Removes what Python
        has compiled there besides, by which a candidate could change them as well."""
        try:
            found = _modules(str(self.modules))
            compiled = {name for name in found - self._kit.keys() if COMPILED in name.split("/")}
            for name in compiled:
                (self.modules / name).unlink()
            return found - compiled == self._kit.keys() and all(
                read(f"{self.modules}/{name}", 0, MOST_OF_A_MODULE) == data for name, data in self._kit.items()
            )
        except (OSError, RecursionError):  # the folder is gone, or somebody made a deep one in it
            return False

    def fork(self, place: Path, *given: int) -> bool:
        """Have it fork a guard with these descriptors for the folder of a grade; return False if it cannot."""
        try:
            socket.send_fds(self._socket, [os.fsencode(place)], given)
            has_begun = self._socket.recv(1) == BEGUN
        except OSError:  # it was killed, or stopped
            return False
        self._socket.settimeout(FORK_SECONDS)
        return has_begun

    def close(self) -> None:
        self._socket.close()
        self._process.kill()
        self._process.wait()
        remove_folder(self._place)


def _modules(folder: str, name: str = "") -> set[str]:
    """Return the names of all files below a folder, links too. No `Path.rglob`, which takes ten times as long."""
    with os.scandir(f"{folder}/{name}") as entries:
        below = [(f"{name}{entry.name}", entry.is_dir(follow_symlinks=False)) for entry in entries]
    files = {name for name, is_folder in below if not is_folder}
    return files.union(*(_modules(folder, f"{name}/") for name, is_folder in below if is_folder))


def _server(kit: Mapping[str, bytes], grades: Path, errors: int) -> GuardServer:
    """Return the process that forks guards with these modules and this worker's variables. It is started where there is
    none."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    if _servers and not _servers[0].is_for(kit, env):
        close_server()
    if not _servers:
        _servers.append(GuardServer(kit, env, grades, errors))
    return _servers[0]


def close_server() -> None:
    """End the process that forks guards, if there is one. The guards go on."""
    while _servers:
        _servers.pop().close()


def start_guard(grades: Path, start: Mapping[str, Any], kit: Mapping[str, bytes]) -> GradeGuard:
    """Start a guard for a grade. If the process that forks guards fails, start another and try again. RuntimeError if
    that fails, too."""
    with contextlib.suppress(_NotBegunError):
        return GradeGuard(grades, start, kit)
    close_server()
    return GradeGuard(grades, start, kit)


def start_of(order: Mapping[str, Any]) -> dict[str, Any]:
    """Return what has to be known of a grade before its guard is started: whether a Python grader runs, and the
    variables that do not differ between the grades of a task."""
    own = {name: value for name, value in order["env"].items() if not name.startswith("CORAL_") and name != "TMPDIR"}
    return {"env": own, "python": order["spec"] is not None}


def take(start: Mapping[str, Any], kit: Mapping[str, bytes]) -> GradeGuard | None:
    """Return the guard that was started for such a grade in advance; None if there is none. One for another grade is
    ended."""
    while _spare:
        guard = _spare.pop()
        if guard.is_for(start, kit):
            return guard
        guard.close()
    return None


def put(guard: GradeGuard) -> None:
    _spare.append(guard)


def read(path: str | Path, offset: int, most: int) -> bytes:
    """Read a part of a file, which a candidate may have made: links are not followed, and a pipe is not waited for."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.pread(handle, most, offset)
        finally:
            os.close(handle)
    return b""


def remove_folder(folder: Path) -> None:
    """Remove a folder in which a candidate could do what it liked, as far as that is possible. By programs, since
    `shutil.rmtree` calls itself for each level, and fails in a folder that is deep."""
    closed = ("-type", "d", "!", "-perm", "-u=rwx")
    _run("find", str(folder), *closed, "-exec", "chmod", "u+rwx", "{}", ";")
    _run("rm", "-rf", "--", str(folder))


def _run(*line: str) -> None:
    null = subprocess.DEVNULL
    with contextlib.suppress(OSError):
        subprocess.run(line, stdin=null, stdout=null, stderr=null, check=False)
