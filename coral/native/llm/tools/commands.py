"""The tools that run programs: any command, the public check, and the commands of `coral` that look at the run."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from coral.native.llm.tools.base import AgentTool
from coral.native.llm.window import clip
from coral.native.llm.workbench import Workbench
from coral.native.tool_error import ToolError
from heartbeats.interval import OwnInterval

POLL_SECONDS = 0.02
END_SECONDS = 0.5  # that a command has after SIGTERM
CHECK_SECONDS, LOOK_SECONDS = 540.0, 60.0
LARGEST_OUTPUT = 4_000_000  # bytes of which the beginning and the end are read
MOST_OUTPUT = 100_000_000  # bytes that a command may print before it is ended: they fill the disk


class RunCommand(AgentTool):
    """Run a shell command in the workspace, and see what it prints. What it leaves running is ended: for long work
    there is job."""

    name: ClassVar[str] = "run"
    works: ClassVar[bool] = True
    command: str = Field(min_length=1)
    seconds: float = Field(60.0, gt=0, description="the longest time it may take")

    def perform(self, bench: Workbench) -> str:
        seconds = min(self.seconds, bench.options.run_seconds)
        code, text = run_command(bench, ["/bin/sh", "-c", self.command], seconds)
        if code is None:
            raise ToolError(f"ended after {seconds:g} seconds; start long work with job\n{text}")
        if code:
            raise ToolError(f"exit code {code}\n{text}")
        return text or "(it printed nothing)"


class RunCheck(AgentTool):
    """Run the task's public check on the workspace as it is. It is quick and submits nothing; only submit counts."""

    name: ClassVar[str] = "check"

    def perform(self, bench: Workbench) -> str:
        text = coral(bench, "check", seconds=CHECK_SECONDS)
        bench.memory = replace(bench.memory, checked=True)
        return text


class Log(AgentTool):
    """List the attempts of the fleet, best first or newest first."""

    name: ClassVar[str] = "log"
    newest: bool = Field(False, description="newest first, failed ones too")
    count: int = Field(20, ge=1, le=200)
    search: str = Field("", description="only attempts whose title, reason or feedback holds this text")

    def perform(self, bench: Workbench) -> str:
        words = ["-n", str(self.count), *(["--recent"] if self.newest else [])]
        return coral(bench, "log", *words, *(["--search", self.search] if self.search else []))


class Show(AgentTool):
    """Show one attempt: its score, its feedback, and the change that it made."""

    name: ClassVar[str] = "show"
    attempt: int = Field(ge=0)
    diff: bool = Field(True, description="also the difference from the attempt it was built on")

    def perform(self, bench: Workbench) -> str:
        return coral(bench, "show", str(self.attempt), *(["--diff"] if self.diff else []))


class Checkout(AgentTool):
    """Put the workspace on the state of an attempt. What you changed since your last submission is set aside."""

    name: ClassVar[str] = "checkout"
    works: ClassVar[bool] = True
    attempt: str = Field(pattern=r"^([0-9]{1,9}|lead)$", description="a number; 0 is the seed; lead: what to build on")

    def perform(self, bench: Workbench) -> str:
        return coral(bench, "checkout", self.attempt)


class JobTool(AgentTool):
    """Long work, such as a training: it survives interrupts. start begins one; look shows the last lines of one, or
    lists all; wait waits until it has ended."""

    name: ClassVar[str] = "job"
    action: Literal["start", "look", "wait"]
    command: str = Field("", description="start: a shell command")
    purpose: str = Field("", description="start: what it is, in a few words")
    number: int = Field(0, ge=0, description="look, wait: which one; 0 with look: all")
    seconds: float = Field(60.0, gt=0, le=600, description="wait: the longest time")

    @property
    def changes(self) -> bool:
        return self.action != "look"

    def perform(self, bench: Workbench) -> str:
        if self.action == "start":
            if not self.command:
                raise ToolError("start needs command, such as python train.py")
            purpose = self.purpose or self.command[:60]
            return coral(bench, "job", "start", "-m", purpose, "--", "/bin/sh", "-c", self.command)
        if self.action == "wait":
            line = ("job", "wait", str(self.number), "--timeout", f"{self.seconds:g}")
            return coral(bench, *line, seconds=self.seconds + LOOK_SECONDS, pending=2)
        return coral(bench, "job", *(("log", str(self.number)) if self.number else ("list",)))


def coral(bench: Workbench, *words: str, seconds: float = LOOK_SECONDS, pending: int = 0) -> str:
    """Run `coral` and return what it prints. ToolError with its own words if it fails. `pending`: an exit code that is
    no error."""
    code, text = run_command(bench, [sys.executable, "-P", "-m", "coral", *words], seconds)
    if code is None:
        raise ToolError(f"`coral {words[0]}` took longer than {seconds:g} seconds")
    if code not in (0, pending):
        raise ToolError(text or f"`coral {words[0]}` ended with exit code {code}")
    return text


def run_command(bench: Workbench, argv: list[str], seconds: float) -> tuple[int | None, str]:
    """Run a command in the workspace. Return its exit code, None if it was ended after `seconds`, and what it printed,
    clipped in the middle. Everything in its process group ends with it. ToolError if it prints more than
    MOST_OUTPUT."""
    with tempfile.TemporaryFile() as output:
        began = last = time.monotonic()
        interval = OwnInterval(bench.environment.get("CORAL_BEATS", ""))
        child = subprocess.Popen(
            argv,
            cwd=bench.clone,
            env=bench.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        bench.group = child.pid
        try:
            while child.poll() is None and time.monotonic() - began < seconds and not _is_flooded(output.fileno()):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(POLL_SECONDS)
                if time.monotonic() - last > interval.seconds():
                    last = time.monotonic()
                    bench.output.beat("tool", f"{argv[-1][:80]}, for {last - began:.0f} s")
            code = child.poll()
        finally:
            end_group(child)
            bench.group = 0
        text = clip(_printed(output.fileno()), bench.longest).strip()
        if _is_flooded(output.fileno()):
            raise ToolError(f"ended, for it printed more than {MOST_OUTPUT // 1_000_000} MB; let it print less\n{text}")
        return code, text


def end_group(child: "subprocess.Popen[bytes]") -> None:
    """End what is left of a command: SIGTERM, and SIGKILL if that was not enough."""
    for number, patience in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                child.poll()  # a child that has ended keeps its group until it is waited for
                os.killpg(child.pid, 0)
                time.sleep(POLL_SECONDS)


def kill_group(group: int) -> None:
    """Kill a process group without waiting, for this process is ending itself. 0 stands for no group."""
    if group:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _is_flooded(handle: int) -> bool:
    return os.fstat(handle).st_size > MOST_OUTPUT


def _printed(handle: int) -> str:
    size = os.fstat(handle).st_size
    if size <= LARGEST_OUTPUT:
        raw = os.pread(handle, size, 0)
    else:
        half = LARGEST_OUTPUT // 2
        raw = os.pread(handle, half, 0) + b"\n[...]\n" + os.pread(handle, half, size - half)
    return raw.decode("utf-8", "replace")
