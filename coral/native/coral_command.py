"""Submits by the real `coral eval` and `coral wait`, run as any agent runs them, and reads what they print.

`coral eval` prints its result and may then stay until a heartbeat interrupts the agent. So the result is read as soon
as it is printed, while the command may go on.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from coral.native.prompt import HeartbeatSection
from coral.native.tool_error import ToolError
from heartbeats.interval import OwnInterval

INTERRUPT_SECONDS = 0.015  # seconds for the command to end by the same signal, before it is passed on
EXIT_PENDING = 2  # submitted, not graded yet


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionResult:
    """The published record of a submission, and the heartbeats that were printed with it."""

    number: int
    title: str
    score: float | None
    verdict: str
    reason: str
    inline: tuple[HeartbeatSection, ...]
    commit: str = ""


class CoralCommand:
    """One run of `coral` in the clone. `beat` is called now and then while this process waits for it."""

    def __init__(self, clone: Path, arguments: Iterable[str], beat: Callable[[str], None]) -> None:
        argv = [sys.executable, "-P", "-m", "coral", *arguments]
        self.beat = beat
        self.interval = OwnInterval(os.environ.get("CORAL_BEATS", ""))
        self.printed = bytearray()
        self.process = subprocess.Popen(
            argv, cwd=clone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def first_object(self) -> Mapping[str, object] | None:
        """Return the first JSON object that the command prints, as soon as it is whole; None if it ends without one."""
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        next_beat = time.monotonic() + self.interval.seconds()
        while True:
            ready, _, _ = select.select([handle], [], [], max(0.0, next_beat - time.monotonic()))
            if not ready:
                self.beat("waiting for the grade")
                next_beat = time.monotonic() + self.interval.seconds()
                continue
            data = self.process.stdout.read1(65536)  # type: ignore[attr-defined]
            self.printed += data
            printed = _whole_object(bytes(self.printed))
            if printed is not None or not data:
                return printed

    def finish(self) -> tuple[int, str]:
        """Wait for the end of the command, however long it stays. Return its exit code and its standard error."""
        while True:
            try:
                _, errors = self.process.communicate(timeout=self.interval.seconds())
                return self.process.returncode, errors.decode("utf-8", "replace").strip()
            except subprocess.TimeoutExpired:
                self.beat("a heartbeat follows")

    def interrupt(self) -> None:
        """Interrupt the command while this process is being interrupted, unless the signal reached it as well."""
        try:
            self.process.wait(INTERRUPT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)


def submission_result(data: Mapping[str, object] | None, code: int | None, errors: str) -> SubmissionResult | None:
    """Return the result that `coral` printed; None if it is still pending. Raises ToolError with what `coral` said."""
    state = data.get("state") if data is not None else None
    record = data.get("record") if data is not None else None
    if isinstance(record, Mapping) and data is not None:
        return _read_record(record, data.get("inline"))
    if state == "refused" and data is not None:
        raise ToolError(f"the submission was refused: {data.get('refused')}")
    if state == "pending" or code == EXIT_PENDING:
        return None
    raise ToolError(errors.splitlines()[0].removeprefix("coral: ") if errors else f"coral ended with exit code {code}")


def _read_record(record: Mapping[str, object], inline: object) -> SubmissionResult:
    number, score = record.get("number"), record.get("score")
    if not isinstance(number, int):
        raise ToolError("the result names no attempt")
    return SubmissionResult(
        number=number,
        title=str(record.get("title", "")),
        score=float(score) if isinstance(score, int | float) else None,
        verdict=str(record.get("verdict", "")),
        reason=str(record.get("reason", "")),
        commit=str(record.get("commit", "")),
        inline=tuple(
            HeartbeatSection(str(item.get("name")), str(item.get("id")), str(item.get("text")))
            for item in (inline if isinstance(inline, list) else [])
            if isinstance(item, Mapping)
        ),
    )


def _whole_object(text: bytes) -> Mapping[str, object] | None:
    if not text.rstrip().endswith(b"}"):
        return None
    try:
        data = json.loads(text)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None
