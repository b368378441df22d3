"""The supervisor's git: one command at a time, in a repository whose directory is given and never searched for.

With `GIT_DIR` set, a damaged repository never leads git to the one above it. Every command has a deadline and a limit
on its output; at either its whole process group is killed. Of GitPython only `git.cmd.Git.execute` is used: its object
API leaves helper processes behind, and its objects become outdated.
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
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from workspace.cancellation import current_token
from workspace.errors import GitError, ReaderError
from workspace.gitenv import FLAGS, SETTINGS, identity

if TYPE_CHECKING:
    from git.cmd import Git as Program

MEGABYTE = 1_000_000
TIMEOUT = 60.0
LIMIT = 256 * MEGABYTE
_STDERR = 64_000
# Entered while we wait for a command. A process that holds signals back delivers them there: the command is killed.
waiting: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext


def scrub_environment() -> None:
    """Remove every GIT_* variable from this process's environment. `Git` calls it too, because GitPython would pass
    them on."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        os.environ.pop(name, None)


class Git:
    """Git on one repository. `variables`: GIT_* variables (`GIT_INDEX_FILE`, ...) that are set for every command."""

    def __init__(self, directory: Path, **variables: str | Path) -> None:
        self.directory = directory.absolute()  # git runs in another folder than this process
        texts = {name: str(value.absolute() if isinstance(value, Path) else value) for name, value in variables.items()}
        self.variables = {**SETTINGS, **identity("Coral"), "GIT_DIR": str(self.directory), **texts}

    def run(
        self, *arguments: str, data: bytes = b"", timeout: float = TIMEOUT, limit: int = LIMIT, cut: bool = False
    ) -> bytes:
        """Run a command; returns its standard output. `data`: its standard input. After `limit` bytes of output the
        rest is cut off (`cut`), or the command fails. GitError if it fails, or takes longer than `timeout` seconds."""
        process = self._start_with(data, arguments)
        output, errors = _finish([process], [arguments], timeout, limit, cut)
        if process.returncode and not (cut and len(output) == limit):
            raise _failure(arguments, errors[0], process.returncode)
        return output

    def text(self, *arguments: str, data: bytes = b"", timeout: float = TIMEOUT) -> str:
        """Run a command as `run`; returns its standard output as text, without white space at its ends."""
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
        """Run `arguments` here and feed its output to `into` in `other`. GitError if one fails; it is a ReaderError if
        that is `into`.

        `head`: a number of bytes and a function. So many bytes of the output are not fed to `into`, but passed to the
        function, whose result is one more argument for `into`. The function may raise, which ends both commands.
        """
        deadline = time.monotonic() + timeout
        first = self._start_with(data, arguments)
        stream = first.stdout
        assert stream is not None
        first.stdout = None
        with stream:
            try:
                more = _argument_from(stream, head, deadline, arguments) if head else ()
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

    def _start_with(self, data: bytes, arguments: tuple[str, ...]) -> Popen[bytes]:
        with tempfile.TemporaryFile() as source:
            source.write(data)
            source.seek(0)
            return self._start(arguments, source)

    def _start(self, arguments: tuple[str, ...], source: IO[bytes]) -> Popen[bytes]:
        if any(name.startswith("GIT_") for name in os.environ):
            scrub_environment()
        load()
        from git.exc import GitCommandNotFound

        token = current_token()
        with token.starting() as running:
            if token.is_cancelled:
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
            process, started.proc = started.proc, None  # its destructor would terminate a process that is still read
            assert process is not None
            running.add(process)
        return process


@lru_cache(maxsize=64)
def _program(folder: str) -> Program:
    """Return GitPython's command runner. Imported only here: the import takes 40 ms, and many commands start no git."""
    load()
    from git.cmd import Git as Program

    return Program(folder)


def load() -> None:
    """Import GitPython. The import changes the environment for a moment: call this before starting threads."""
    if "git.cmd" not in sys.modules:
        os.environ["GIT_PYTHON_REFRESH"] = "quiet"  # or the import itself raises where there is no git
        importlib.import_module("git.cmd")
        scrub_environment()


def _finish(
    processes: list[Popen[bytes]], commands: list[tuple[str, ...]], timeout: float, limit: int, cut: bool
) -> tuple[bytes, list[str]]:
    """Wait until all have ended; returns the output of the last, and the standard error of each."""
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


def _argument_from(
    stream: IO[bytes], head: tuple[int, Callable[[bytes], str]], deadline: float, arguments: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the argument that the function of `head` makes of a stream's first bytes; none if the stream ends
    before."""
    count, make_argument = head
    read = bytearray()
    with selectors.DefaultSelector() as ready:
        ready.register(stream, selectors.EVENT_READ)
        while len(read) < count:
            if not ready.select(max(0.0, deadline - time.monotonic())):
                raise GitError(f"cannot run git {arguments[0]}: it took too long", timed_out=True)
            if not (chunk := os.read(stream.fileno(), count - len(read))):
                return ()
            read += chunk
    return (make_argument(bytes(read)),)


def _drain(sinks: dict[IO[bytes] | None, bytearray], deadline: float, limit: int) -> bool:
    """Read every stream to its end into its buffer; return False as soon as the first has reached `limit` and more
    comes."""
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
    """Kill the processes that still run, with their children, and close our ends of their pipes."""
    for process in processes:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        current_token().remove(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def _failure(arguments: tuple[str, ...], detail: str, code: int, kind: type[GitError] = GitError) -> GitError:
    lines = detail.split("\n")
    complaint = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])
    complaint = complaint.removeprefix("fatal: ").removeprefix("error: ") or f"exit code {code}"
    return kind(f"cannot run git {arguments[0]}: {complaint[:500]}", detail=detail, killed=code < 0)
