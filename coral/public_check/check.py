"""Measures candidates by the task's public check, up to thousands in a second.

The check runs in a child process on a scratch copy of the workspace. If it crashes or hangs on a candidate, that one
gets an error; the child is replaced and the others are measured.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from coral.public_check import check_child
from coral.public_check.candidate import Measurement, Texts
from coral.public_check.check_child import ANSWER, LENGTH

LEFT_OUT = {".git", ".shared", "__pycache__"}  # of the copy: a check needs none of these
LARGEST_COPY = 20_000_000  # bytes of one file; larger ones are linked, not copied
MOST_TIMEOUTS = 4  # without any answer; the check is then of no use
START_SECONDS = 60.0  # for a check to be imported


class CheckBroken(Exception):  # noqa: N818
    """The check cannot be used at all; the message says why."""


class PublicCheck:
    """Measures candidates in a scratch copy of a workspace. `environment`: the environment
    variables of the check's process; None: those of this process."""

    def __init__(
        self, root: Path, spec: str, scratch: Path, seconds: float, environment: Mapping[str, str] | None = None
    ) -> None:
        self.root, self.spec, self.scratch, self.seconds = root, spec, scratch, seconds
        self.environment = environment
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        self._has_answered, self._timeouts = False, 0
        copy_workspace(root, scratch)

    def warm_up(self) -> None:
        """Start the child and let it measure once, unless it has: that takes longer than any later measurement."""
        if self._child is None:
            self.measure([{}])

    def measure(self, candidates: Sequence[Texts]) -> list[Measurement]:
        out: list[Measurement] = []
        one_by_one = False  # after a failure, to know which of them fails
        while len(out) < len(candidates):
            batch = candidates[len(out) : len(out) + 1] if one_by_one else candidates[len(out) :]
            measured, failure = self._exchange(batch)
            out += measured
            if failure:
                self.close()
                one_by_one = True
                out += [Measurement(error=failure)] if len(batch) == 1 else []
        return out

    def close(self) -> None:
        """End the child, whatever it is doing."""
        self.kill()
        child, self._child = self._child, None
        if child is not None:
            with suppress(BrokenPipeError), child:  # waits for it and closes its pipes, though a request is left in one
                pass
        self._buffer.clear()

    def kill(self) -> None:
        """Kill the child and its group without waiting for it. After a wait, its number may be another process's."""
        child = self._child
        if child is not None and child.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)

    def _exchange(self, batch: Sequence[Texts]) -> tuple[list[Measurement], str]:
        """Return the measurements that came, and what ended the exchange early; empty if nothing did."""
        child = self._child or self._start()
        assert child.stdin is not None
        request = json.dumps(batch).encode()
        measured: list[Measurement] = []
        try:
            child.stdin.write(LENGTH.pack(len(request)) + request)
            child.stdin.flush()
            for _ in batch:
                measured.append(self._read_answer(child, self.seconds))
                self._has_answered = True
        except TimeoutError:
            self._timeouts += 1
            if self._timeouts >= MOST_TIMEOUTS and not self._has_answered:
                self.close()
                raise CheckBroken(f"no answer from it within {self.seconds:g} s, {self._timeouts} times") from None
            return measured, f"no answer from the check within {self.seconds:g} s"
        except (BrokenPipeError, EOFError):
            return measured, f"the check ended its process (exit {child.wait()})"
        return measured, ""

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-B", check_child.__file__, self.spec, str(self.scratch)]
        # A group of its own, so that what the check starts ends with it.
        pipe = subprocess.PIPE
        child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, cwd=self.scratch, env=self.environment, process_group=0
        )
        self._child = child
        try:
            loaded = self._read_answer(child, START_SECONDS)
        except (TimeoutError, EOFError):
            loaded = Measurement(error=f"the check {self.spec} did not start")
        if loaded.error:
            self.close()
            raise CheckBroken(loaded.error)
        return child

    def _read_answer(self, child: subprocess.Popen[bytes], seconds: float) -> Measurement:
        deadline = time.monotonic() + seconds
        self._fill_buffer(child, ANSWER.size, deadline)
        ok, score, count = ANSWER.unpack_from(self._buffer)
        size = ANSWER.size + count * (8 if ok else 1)
        self._fill_buffer(child, size, deadline)
        body = bytes(self._buffer[ANSWER.size : size])
        del self._buffer[:size]
        return Measurement(score, array("d", body)) if ok else Measurement(error=body.decode(errors="replace"))

    def _fill_buffer(self, child: subprocess.Popen[bytes], size: int, deadline: float) -> None:
        assert child.stdout is not None
        handle = child.stdout.fileno()
        while len(self._buffer) < size:
            ready, _, _ = select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            data = os.read(handle, 1 << 20)
            if not data:
                raise EOFError
            self._buffer += data


def check_once(root: Path, spec: str, seconds: float) -> Measurement:
    """Measure a workspace as it is. CheckBroken if the check cannot be used at all."""
    with (
        tempfile.TemporaryDirectory(prefix="coral-check-", ignore_cleanup_errors=True) as folder,
        closing(PublicCheck(root, spec, Path(folder) / "candidate", seconds)) as check,
    ):
        return check.measure([{}])[0]


def copy_workspace(root: Path, scratch: Path) -> None:
    """Copy the workspace's files to `scratch`, which is emptied first. Files above LARGEST_COPY are linked."""
    shutil.rmtree(scratch, ignore_errors=True)

    def copy(source: str, target: str) -> None:
        if Path(source).stat().st_size > LARGEST_COPY:
            Path(target).symlink_to(source)
        else:
            shutil.copyfile(source, target)

    def leave_out(folder: str, names: list[str]) -> list[str]:
        """Return what is not copied: links and special files, too."""
        entries = [entry for entry in os.scandir(folder) if not entry.is_symlink()]
        plain = {entry.name for entry in entries if entry.is_dir() or entry.is_file()}
        return [name for name in names if name in LEFT_OUT or name not in plain]

    shutil.copytree(root, scratch, copy_function=copy, ignore=leave_out)
