"""Handing in: the real `coral eval` and `coral wait`, run as any agent runs them, read as they print.

`coral eval` prints its result and may then stay until a heartbeat interrupts us, since that is where to be
interrupted: the result is taken in as soon as it is printed, and the command is left to stay.
"""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from coral.native.prompt import Section
from coral.native.tool_error import ToolError

PULSE = 10.0  # seconds between two signs of life while waiting
POLITE = 0.015  # seconds that the command has to hear the interrupt itself, before we pass it on
PENDING = 2  # exit code: handed in, not graded yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a submission: the published record, and what is asked on top of it."""

    number: int
    title: str
    score: float | None
    verdict: str
    reason: str
    inline: tuple[Section, ...]


class Command:
    """One run of `coral` in the clone."""

    def __init__(self, clone: Path, arguments: Iterable[str], pulse: Callable[[str], None]) -> None:
        argv = [sys.executable, "-P", "-m", "coral", *arguments]
        self.pulse = pulse
        self.said = bytearray()
        self.process = subprocess.Popen(
            argv, cwd=clone, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def object(self) -> Mapping[str, object] | None:
        """The first JSON object it prints, as soon as it is whole; None if it ends without one."""
        assert self.process.stdout is not None
        handle = self.process.stdout.fileno()
        next_pulse = time.monotonic() + PULSE
        while True:
            ready, _, _ = select.select([handle], [], [], max(0.0, next_pulse - time.monotonic()))
            if not ready:
                self.pulse("waiting for the grade")
                next_pulse = time.monotonic() + PULSE
                continue
            data = self.process.stdout.read1(65536)  # type: ignore[attr-defined]
            self.said += data
            found = _whole(bytes(self.said))
            if found is not None or not data:
                return found

    def finish(self) -> tuple[int, str]:
        """Wait for its end, however long it stays; the exit code and what it complained of."""
        while True:
            try:
                _, errors = self.process.communicate(timeout=PULSE)
                return self.process.returncode, errors.decode("utf-8", "replace").strip()
            except subprocess.TimeoutExpired:
                self.pulse("a heartbeat follows")

    def interrupt(self) -> None:
        """For the moment of our own interrupt: the command hears of it too, and only once."""
        try:
            self.process.wait(POLITE)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGINT)


def result_of(data: Mapping[str, object] | None, code: int | None, errors: str) -> Result | None:
    """The result, None if it is still pending. Raises ToolError with what the command said."""
    state = data.get("state") if data is not None else None
    record = data.get("record") if data is not None else None
    if isinstance(record, Mapping) and data is not None:
        return _result(record, data.get("inline"))
    if state == "refused" and data is not None:
        raise ToolError(f"the submission was refused: {data.get('refused')}")
    if state == "pending" or code == PENDING:
        return None
    raise ToolError(errors.splitlines()[0].removeprefix("coral: ") if errors else f"coral ended with exit code {code}")


def _result(record: Mapping[str, object], inline: object) -> Result:
    number, score = record.get("number"), record.get("score")
    if not isinstance(number, int):
        raise ToolError("the result names no attempt")
    return Result(
        number=number,
        title=str(record.get("title", "")),
        score=float(score) if isinstance(score, int | float) else None,
        verdict=str(record.get("verdict", "")),
        reason=str(record.get("reason", "")),
        inline=tuple(
            Section(str(item.get("name")), str(item.get("id")), str(item.get("text")))
            for item in (inline if isinstance(inline, list) else [])
            if isinstance(item, Mapping)
        ),
    )


def _whole(text: bytes) -> Mapping[str, object] | None:
    if not text.rstrip().endswith(b"}"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
