"""Starts a candidate as a user of its own, by `coral.grader.starter`.

A grader with a user of its own may not start programs as another user. So Coral starts such a grader with a starter
beside it, which runs as the user of the candidates. A grader that is root starts one itself.
"""

from __future__ import annotations

import atexit
import io
import marshal
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import BinaryIO

from coral.grader import landlock, sandbox
from coral.grader.remove_tree import remove_tree

ANSWER = 3  # the descriptor by which a candidate answers
END_SECONDS = 5.0  # to wait for a candidate that was told to end
_KILLED = -9

_own: list[subprocess.Popen[bytes]] = []  # the starter of this process, if it has started one


class StartedAsUser:
    """A candidate that runs as a user of its own, with methods of Popen. OSError if it cannot be started."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int, answer: int) -> None:
        if not is_reachable(cwd):
            raise OSError(f"other users cannot reach {cwd}")
        message = marshal.dumps((list(argv), str(cwd), dict(env)))
        (out, stdout), (err, stderr) = os.pipe(), os.pipe()
        self.stdout: BinaryIO = io.FileIO(out)
        self.stderr: BinaryIO = io.FileIO(err)
        self._code: int | None = None
        self._socket, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(_starter(), [message], [stdin, stdout, stderr, answer, theirs.fileno()])
        except BaseException:
            self.end()
            raise
        finally:
            os.close(stdout)
            os.close(stderr)

    def poll(self) -> int | None:
        return self._answered(0.0)

    def wait(self, timeout: float) -> int:
        if (code := self._answered(timeout)) is None:
            raise subprocess.TimeoutExpired("a candidate", timeout)
        return code

    def end(self) -> None:
        """End the candidate with its process group. What else it has started ends once no other candidate runs."""
        for stream in (self.stdout, self.stderr):
            stream.close()
        try:
            self._socket.shutdown(socket.SHUT_WR)
            self._answered(END_SECONDS)
        except OSError:  # the starter is gone
            pass
        self._socket.close()

    def _answered(self, seconds: float) -> int | None:
        if self._code is None:
            self._socket.settimeout(max(seconds, 0.0))
            try:
                text = self._socket.recv(20)
            except (BlockingIOError, TimeoutError):
                return None
            except OSError:
                text = b""
            # The starter ends with no answer where the candidate has killed it, and then there is no exit code.
            self._code = int(text) if text else _KILLED
        return self._code


def is_reachable(path: Path) -> bool:
    """Return whether another user, who shares our groups unless we are root, can pass all folders down to this one."""
    bits = stat.S_IXOTH if os.geteuid() == 0 else stat.S_IXOTH | stat.S_IXGRP
    return all(parent.stat().st_mode & bits for parent in (path, *path.parents))


@cache
def _starter() -> socket.socket:
    given = os.environ.get("CORAL_STARTER")
    if given:
        return socket.socket(fileno=int(given))
    if os.geteuid() != 0 or not is_reachable(Path(sys.executable).resolve().parent):
        raise OSError("users of their own need root, and a Python that they can reach")
    return _of_our_own()


def _of_our_own() -> socket.socket:
    place = Path(tempfile.mkdtemp(prefix="candidates-"))
    number = sandbox.OWN_USERS[int.from_bytes(os.urandom(4)) % len(sandbox.OWN_USERS)]
    os.chown(place, number, number)
    atexit.register(remove_tree, place)
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)
    rules = {"starter": sandbox.starter_rules(number, (), str(place)), "socket": theirs.fileno()}
    line = [sys.executable, "-I", "-S", "-B", landlock.__file__, marshal.dumps(rules).hex()]
    with theirs:
        _own.append(subprocess.Popen(line, cwd="/", stdin=subprocess.DEVNULL, pass_fds=(theirs.fileno(),), env={}))
    return ours
