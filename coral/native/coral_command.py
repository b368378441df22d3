"""Submits by the real `coral eval` and `coral wait`, run as any agent runs them, and reads what they print.

Both print the result and may then stay until a heartbeat interrupts the agent. So a result is taken as soon as it is
printed, while the command may go on.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from attempts.record import Attempt, attempt_from_dict
from coral.native.prompt import HeartbeatSection
from coral.native.tool_error import ToolError
from heartbeats.interval import OwnInterval

INTERRUPT_SECONDS = 0.015  # seconds for the command to end by the same signal, before it is passed on
EXIT_PENDING = 2  # submitted, not graded yet
WAIT_SECONDS, PROMPT_SECONDS = 600.0, 5.0  # of one `coral wait`; if it ends within PROMPT_SECONDS, nobody grades

Inline = tuple[HeartbeatSection, ...]  # heartbeats that are printed with a result


class CoralCommand:
    """Runs `coral` in a clone. `beat` is called now and then while this process waits for it; `take` with each result,
    as soon as it is printed."""

    def __init__(self, clone: Path, beat: Callable[[str], None], take: Callable[[Attempt, Inline], None]) -> None:
        self.clone, self.beat, self.take = clone, beat, take
        self.process: subprocess.Popen[bytes] | None = None

    def submit(self, title: str) -> Attempt | None:
        """Submit the clone as it is. Return the result; None if it is pending."""
        return self._run("eval", "-m", title, "--json")

    def wait(self) -> Attempt:
        """Wait for the grade of the last submission, as long as somebody grades. A transient ToolError: there is
        none."""
        while True:
            began = time.monotonic()
            try:
                attempt = self._run("wait", "--json", "--timeout", f"{WAIT_SECONDS:g}")
            except ToolError as problem:
                raise ToolError(str(problem), transient=True) from problem
            if attempt is not None:
                return attempt
            if time.monotonic() - began < PROMPT_SECONDS:
                raise ToolError("it is submitted, and nobody seems to grade; do not submit it again")

    def interrupt(self) -> None:
        """Interrupt the command while this process is being interrupted, unless the signal reached it as well."""
        if self.process is not None:
            try:
                self.process.wait(INTERRUPT_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.send_signal(signal.SIGINT)

    def _run(self, *words: str) -> Attempt | None:
        """Run a command to its end, however long it stays. Return its result; None if it is pending."""
        argv, pipe, result = [sys.executable, "-P", "-m", "coral", *words], subprocess.PIPE, None
        interval = OwnInterval(os.environ.get("CORAL_BEATS", ""))
        with subprocess.Popen(argv, cwd=self.clone, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe) as process:
            self.process, out, errors = process, process.stdout, process.stderr
            assert out is not None
            assert errors is not None
            read, reading = {out: b"", errors: b""}, [out, errors]
            while reading:
                ready = select.select(reading, [], [], interval.seconds())[0]
                if not ready:
                    self.beat("waiting for the grade" if result is None else "a heartbeat follows")
                for stream in ready:
                    read[stream] += (data := os.read(stream.fileno(), 65536))
                    reading = reading if data else [other for other in reading if other is not stream]
                if result is None and (result := read_result(read[out])) is not None:
                    self.take(*result)
        self.process = None
        if not read[out] and process.returncode != EXIT_PENDING:
            lines = read[errors].decode("utf-8", "replace").splitlines() or [f"coral ended with {process.returncode}"]
            raise ToolError(lines[0].removeprefix("coral: "))
        return result[0] if result is not None else None


def read_result(printed: bytes) -> tuple[Attempt, Inline] | None:
    """Return the result that `coral` printed; None if it is not whole, or still pending. ToolError if it was
    refused."""
    try:
        data = json.loads(printed)
        record, inline = data.get("record"), data.get("inline", ())
        if record is None and data.get("state") == "refused":
            raise ToolError(f"the submission was refused: {data.get('refused')}")
        parts = tuple(HeartbeatSection(str(part["name"]), str(part["id"]), str(part["text"])) for part in inline)
        return (attempt_from_dict(record), parts) if record is not None else None
    except ValueError:
        return None
