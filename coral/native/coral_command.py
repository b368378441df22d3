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
from collections.abc import Callable, Mapping
from pathlib import Path

from attempts.record import Attempt, attempt_from_dict
from coral.native.prompt import HeartbeatSection
from coral.native.tool_error import ToolError
from heartbeats.interval import OwnInterval

INTERRUPT_SECONDS = 0.015  # seconds for the command to end by the same signal, before it is passed on
EXIT_PENDING = 2  # submitted, not graded yet
WAIT_SECONDS, PROMPT_SECONDS = 600.0, 5.0  # of one `coral wait`; if it ends within PROMPT_SECONDS, nobody grades

Result = tuple[Attempt, tuple[HeartbeatSection, ...]]  # a published record, and the heartbeats printed with it


class CoralCommand:
    """Runs `coral` in a clone. `beat` is called now and then while this process waits for it; `take` with each result,
    as soon as it is printed."""

    def __init__(
        self,
        clone: Path,
        beat: Callable[[str], None],
        take: Callable[[Attempt, tuple[HeartbeatSection, ...]], None],
    ) -> None:
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
        argv, pipe = [sys.executable, "-P", "-m", "coral", *words], subprocess.PIPE
        interval = OwnInterval(os.environ.get("CORAL_BEATS", ""))
        process = subprocess.Popen(argv, cwd=self.clone, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
        self.process = process
        printed = self._first_object(process, interval)
        result = read_result(printed, None, "") if printed is not None else None
        if result is not None:
            self.take(*result)
        while True:
            try:
                _, errors = process.communicate(timeout=interval.seconds())
                break
            except subprocess.TimeoutExpired:
                self.beat("a heartbeat follows")
        self.process = None
        if printed is None:
            result = read_result(None, process.returncode, errors.decode("utf-8", "replace").strip())
        return result[0] if result is not None else None

    def _first_object(self, process: "subprocess.Popen[bytes]", interval: OwnInterval) -> Mapping[str, object] | None:
        """Return the first JSON object that the command prints, as soon as it is whole; None if it ends without one."""
        assert process.stdout is not None
        printed = b""
        while True:
            if not select.select([process.stdout], [], [], interval.seconds())[0]:
                self.beat("waiting for the grade")
                continue
            data = os.read(process.stdout.fileno(), 65536)
            printed += data
            try:
                found = json.loads(printed)
            except ValueError:
                found = None
            if found is not None or not data:
                return found if isinstance(found, dict) else None


def read_result(printed: Mapping[str, object] | None, code: int | None, errors: str) -> Result | None:
    """Return the result that `coral` printed; None if it is still pending. Raises ToolError with what `coral` said."""
    printed = printed or {}
    record, inline = printed.get("record"), printed.get("inline")
    if isinstance(record, Mapping):
        try:
            attempt = attempt_from_dict(record)
        except ValueError as problem:
            raise ToolError(f"cannot read the result: {problem}") from problem
        parts = [part for part in inline if isinstance(part, Mapping)] if isinstance(inline, list) else []
        return attempt, tuple(
            HeartbeatSection(*(str(part.get(name)) for name in ("name", "id", "text"))) for part in parts
        )
    if printed.get("state") == "refused":
        raise ToolError(f"the submission was refused: {printed.get('refused')}")
    if printed.get("state") == "pending" or code == EXIT_PENDING:
        return None
    raise ToolError(errors.splitlines()[0].removeprefix("coral: ") if errors else f"coral ended with exit code {code}")
