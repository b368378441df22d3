"""Runs a command of the task's author to its end, and kills what it leaves running: nothing else would end that
later."""

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from coral.processes import received_signals

SHOWN = 3000  # bytes of the end of its output


def run_command(argv: Sequence[str], folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a command; returns its exit code and the end of its output. The output goes to a file, because a process that
    is left behind would hold a pipe open. An interrupt ends the wait and the command. Blocks."""
    with tempfile.TemporaryFile() as output:
        child = subprocess.Popen(
            argv,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            with received_signals.let_through():
                if hasattr(os, "waitid"):
                    # Waited for but not reaped: no other process gets its number until its group is killed.
                    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
                else:  # macOS, before Python 3.13
                    child.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        output.seek(max(output.seek(0, os.SEEK_END) - SHOWN, 0))
        return child.returncode, output.read().decode(errors="replace").strip()
