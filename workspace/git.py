"""The supervisor's git: one command at a time, in a repository that is named and never searched for.

Rules: a repository's directory is always given (`GIT_DIR`), so a damaged one never leads git to the one above it; every
command has a deadline and a limit on its output, and at either its whole process group is killed.
Only `git.cmd.Git.execute` of GitPython is used: its object API leaves helper processes behind and goes stale.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import selectors
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from workspace.cancellation import current_token
from workspace.errors import GitError, ReaderError
from workspace.gitenv import FLAGS, SETTINGS, identity

__all__ = ["Git", "GitError", "ReaderError", "scrub_environment"]

if TYPE_CHECKING:
    from git.cmd import Git as Program

MEGABYTE = 1_000_000
TIMEOUT = 60.0
LIMIT = 256 * MEGABYTE
_STDERR = 64_000
# Entered while a command is waited for. Whoever holds signals back lets them through there: what runs is killed.
waiting: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


def scrub_environment() -> None:
    """Drop every GIT_* of this process, for all that it will start. `Git` calls it too: GitPython hands them on."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        os.environ.pop(name, None)


class Git:
    """Git on one repository. `variables` are GIT_* (`GIT_INDEX_FILE`, ...) that hold for every command."""

    def __init__(self, directory: Path, **variables: str | Path) -> None:
        self.directory = directory.absolute()  # git runs in another folder than we do
        self.variables = {**SETTINGS, **identity("Coral"), "GIT_DIR": str(self.directory), **_texts(variables)}

    def with_(self, **variables: str | Path) -> Git:
        """The same repository with other variables on top."""
        return Git(self.directory, **{**self.variables, **_texts(variables)})

    def run(
        self, *arguments: str, data: bytes = b"", timeout: float = TIMEOUT, limit: int = LIMIT, cut: bool = False
    ) -> bytes:
        """Standard output. Over `limit` bytes it is cut off there (`cut`), or the command fails."""
        with tempfile.TemporaryFile() as source:
            source.write(data)
            source.seek(0)
            process = self._start(arguments, source)
        output, errors = _finish([process], [arguments], timeout, limit, cut)
        if process.returncode and not (cut and len(output) == limit):
            raise _failure(arguments, errors[0], process.returncode)
        return output

    def text(self, *arguments: str, data: bytes = b"", timeout: float = TIMEOUT) -> str:
        """Standard output as text, without the line's end."""
        return self.run(*arguments, data=data, timeout=timeout).decode("utf-8", "replace").strip()

    def pipe(
        self,
        arguments: tuple[str, ...],
        other: Git,
        into: tuple[str, ...],
        *,
        data: bytes,
        timeout: float = TIMEOUT,
        head: tuple[int, Callable[[bytes], str]] | None = None,
    ) -> None:
        """Run `arguments` here and feed its output to `into` in `other`; `ReaderError` when it is `into` that fails.

        `head`: so many bytes of the output are kept back and given to a function, which may raise to call it all off,
        and whose answer is one more argument for `into`.
        """
        deadline = time.monotonic() + timeout
        with tempfile.TemporaryFile() as source:
            source.write(data)
            source.seek(0)
            first = self._start(arguments, source)
        stream = first.stdout
        assert stream is not None
        first.stdout = None
        with stream:
            try:
                more = _looked_at(stream, head, deadline, arguments) if head else ()
                second = other._start((*into, *more), stream)
            except BaseException:
                _kill([first])
                raise
        _, errors = _finish([first, second], [arguments, into], deadline - time.monotonic(), LIMIT, cut=False)
        # When the reader stops first, the writer dies of the broken pipe: then the reader's message is the reason.
        if first.returncode not in (0, -signal.SIGPIPE, 128 + signal.SIGPIPE):
            raise _failure(arguments, errors[0], first.returncode)
        if second.returncode:
            raise _failure(into, errors[1], second.returncode, ReaderError)

    def _start(self, arguments: tuple[str, ...], source: IO[bytes]) -> Popen[bytes]:
        if any(name.startswith("GIT_") for name in os.environ):
            scrub_environment()
        load()
        from git.exc import GitCommandNotFound

        held = current_token()
        with held.starting() as running:
            if held.is_cancelled:
                raise GitError(f"cannot run git {arguments[0]}: it is to end", killed=True)
            try:
                started = _program(str(self.directory.parent)).execute(
                    ["git", *FLAGS, *arguments],
                    istream=cast(BinaryIO, source),
                    as_process=True,
                    env=self.variables,
                    start_new_session=True,
                )
            except GitCommandNotFound as error:
                raise GitError("cannot find the program git", "install git, and see that it is on PATH") from error
            process, started.proc = started.proc, None  # its destructor would terminate what we still read
            assert process is not None
            running.add(process)
        return process


@lru_cache(maxsize=64)
def _program(folder: str) -> Program:
    """GitPython's command runner; imported late, since that takes 40 ms that reading a few files need not pay."""
    load()
    from git.cmd import Git as Program

    return Program(folder)


def load() -> None:
    """Import GitPython. A process with threads does so before it has any: the environment is changed for a moment."""
    if "git.cmd" not in sys.modules:
        os.environ["GIT_PYTHON_REFRESH"] = "quiet"  # or the import itself raises where there is no git
        importlib.import_module("git.cmd")
        scrub_environment()


def _texts(variables: Mapping[str, str | Path]) -> dict[str, str]:
    return {name: str(value.absolute() if isinstance(value, Path) else value) for name, value in variables.items()}


def _finish(
    processes: list[Popen[bytes]], commands: list[tuple[str, ...]], timeout: float, limit: int, cut: bool
) -> tuple[bytes, list[str]]:
    """Read until all have ended: the last one's output, and what each said on standard error."""
    deadline = time.monotonic() + timeout
    output, errors = bytearray(), [bytearray() for _ in processes]
    sinks = {process.stderr: sink for process, sink in zip(processes, errors, strict=True)}
    try:
        with waiting():
            complete = _drain({processes[-1].stdout: output, **sinks}, deadline, limit)
            if not complete:
                _kill(processes)
            for process in processes:
                process.wait(max(0.0, deadline - time.monotonic()) if complete else None)
        if not complete and not cut:
            raise GitError(f"cannot run git {commands[-1][0]}: it printed more than {limit:,} bytes")
    except (TimeoutExpired, TimeoutError) as error:
        message = f"cannot run git {commands[0][0]}: it took more than {timeout:g} s"
        raise GitError(message, timed_out=True) from error
    finally:
        _kill(processes)
    return bytes(output), [bytes(sink).decode("utf-8", "replace").strip() for sink in errors]


def _looked_at(
    stream: IO[bytes], head: tuple[int, Callable[[bytes], str]], deadline: float, arguments: tuple[str, ...]
) -> tuple[str, ...]:
    """What the beginning of a stream leads to; nothing if it ends before that."""
    count, look = head
    read = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        while len(read) < count:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                raise GitError(f"cannot run git {arguments[0]}: it took too long", timed_out=True)
            if not (chunk := os.read(stream.fileno(), count - len(read))):
                return ()
            read += chunk
    return (look(bytes(read)),)


def _drain(sinks: dict[IO[bytes] | None, bytearray], deadline: float, limit: int) -> bool:
    """Read every stream to its end into its sink; False as soon as the first sink holds `limit` and more comes."""
    first = next(iter(sinks.values()))
    with selectors.DefaultSelector() as ready:
        for stream, sink in sinks.items():
            assert stream is not None
            ready.register(stream, selectors.EVENT_READ, sink)
        while ready.get_map():
            events = ready.select(max(0.0, deadline - time.monotonic()))
            if not events:
                raise TimeoutError
            for key, _ in events:
                chunk = os.read(key.fd, 65536)
                if not chunk:
                    ready.unregister(key.fileobj)
                free = (limit if key.data is first else _STDERR) - len(key.data)
                key.data.extend(chunk[:free])
                if key.data is first and len(chunk) > free:
                    return False
    return True


def _kill(processes: Iterable[Popen[bytes]]) -> None:
    """End what still runs, with its children, and close our ends."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        current_token().let_go(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _failure(arguments: tuple[str, ...], detail: str, code: int, kind: type[GitError] = GitError) -> GitError:
    complaint = next(
        (line for line in detail.splitlines() if line.startswith(("fatal:", "error:"))), detail.split("\n")[0]
    )
    complaint = complaint.removeprefix("fatal: ").removeprefix("error: ") or f"exit code {code}"
    return kind(f"cannot run git {arguments[0]}: {complaint[:500]}", detail=detail, killed=code < 0)
