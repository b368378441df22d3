"""The task's public check as a service: candidates in, outcomes out, many a millisecond apart.

The check runs in a child process on a scratch copy of the workspace. A check that crashes or hangs costs the candidate
on which it did so; the child is replaced and the others are measured.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coral.native.search import check_child
from coral.native.search.check_child import ANSWER, LENGTH

LARGEST_COPY = 20_000_000  # bytes of one file; larger ones are linked, not copied
START_SECONDS = 60.0  # what a check may take to import
RESTARTS = 3  # replacements in a row without one answer between them
LEFT_OUT = (".git", ".shared", "__pycache__")

Texts = dict[str, str]


class CheckBroken(Exception):  # noqa: N818
    """The check cannot be used at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the check said of one candidate. `error` is not empty where it said nothing usable."""

    score: float = 0.0
    slack: Sequence[float] = ()
    error: str = ""
    worst: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "worst", min(self.slack, default=0.0))

    @property
    def feasible(self) -> bool:
        return not self.error and self.worst >= 0.0


class Check:
    def __init__(self, root: Path, spec: str, scratch: Path, seconds: float) -> None:
        self.root, self.spec, self.scratch, self.seconds = root, spec, scratch, seconds
        self.evaluations = 0
        self._child: subprocess.Popen[bytes] | None = None
        self._buffer = bytearray()
        copy_workspace(root, scratch)

    def measure(self, candidates: Sequence[Texts]) -> list[Outcome]:
        """One outcome per candidate, in order."""
        out: list[Outcome] = []
        lonely = restarts = 0  # after a failure the rest go one by one, so that the culprit is known
        while len(out) < len(candidates):
            batch = candidates[len(out) : len(out) + 1] if lonely else candidates[len(out) :]
            got, failure = self._exchange(batch)
            out.extend(got)
            restarts = 0 if got else restarts
            lonely = max(0, lonely - len(got))
            if failure:
                self.close()
                if len(batch) == 1:
                    out.append(Outcome(error=failure))
                    restarts += 1
                    if restarts > RESTARTS and not self.evaluations:
                        raise CheckBroken(failure)
                else:
                    lonely = len(candidates)
        self.evaluations += len(out)
        return out

    def close(self) -> None:
        """End the child, whatever it is doing."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
        self._buffer.clear()

    def kill(self) -> None:
        """As `close`, for the moment of our own end: nothing is waited for."""
        if self._child is not None:
            self._child.kill()

    def _exchange(self, batch: Sequence[Texts]) -> tuple[list[Outcome], str]:
        """The outcomes that came, and what ended the exchange early."""
        child = self._child or self._start()
        assert child.stdin is not None
        request = json.dumps(batch).encode()
        got: list[Outcome] = []
        try:
            child.stdin.write(LENGTH.pack(len(request)) + request)
            child.stdin.flush()
            for _ in batch:
                got.append(self._answer(child, self.seconds))
        except TimeoutError:
            return got, f"no answer from the check within {self.seconds:g} s"
        except (BrokenPipeError, EOFError):
            return got, f"the check ended its process (exit {child.wait()})"
        return got, ""

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-P", "-B", check_child.__file__, self.spec, str(self.scratch)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=self.scratch)
        self._child = child
        try:
            hello = self._answer(child, START_SECONDS)
        except (TimeoutError, EOFError) as problem:
            self.close()
            raise CheckBroken(f"the check {self.spec} did not start") from problem
        if hello.error:
            self.close()
            raise CheckBroken(hello.error)
        return child

    def _answer(self, child: subprocess.Popen[bytes], seconds: float) -> Outcome:
        deadline = time.monotonic() + seconds
        self._fill(child, ANSWER.size, deadline)
        ok, score, count = ANSWER.unpack_from(self._buffer)
        size = ANSWER.size + count * (8 if ok else 1)
        self._fill(child, size, deadline)
        body = bytes(self._buffer[ANSWER.size : size])
        del self._buffer[:size]
        return Outcome(score, array("d", body)) if ok else Outcome(error=body.decode(errors="replace"))

    def _fill(self, child: subprocess.Popen[bytes], size: int, deadline: float) -> None:
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


def copy_workspace(root: Path, scratch: Path) -> None:
    """A fresh copy of the workspace's files in `scratch`, which is emptied first."""
    shutil.rmtree(scratch, ignore_errors=True)

    def copy(source: str, target: str) -> None:
        if Path(source).stat().st_size > LARGEST_COPY:
            Path(target).symlink_to(source)
        else:
            shutil.copyfile(source, target)

    def leave_out(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if name in LEFT_OUT or not _plain(Path(folder, name))]

    shutil.copytree(root, scratch, copy_function=copy, ignore=leave_out)


def _plain(path: Path) -> bool:
    return not path.is_symlink() and (path.is_dir() or path.is_file())
