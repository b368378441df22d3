"""The number that a command prints: the last one of its last line that has any. `args` in task.yaml: `command`, a line
for the shell, in which $GRADER is the folder of the grader's own files; `pattern`, a regular expression whose first
group is the number, where it is another one.

The command runs code of the candidate, which could print what it likes: the channel of such a score is open. What the
benchmark itself consists of is the grader's own copy, and nothing that agents change.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from coral.grader import Fail, Result

NUMBER = r"([-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)"
SHOWN = 5000  # characters of feedback


def grade(workspace: Path, private: Path, args: dict[str, str], deadline: float) -> Result:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    modules = os.pathsep.join((str(workspace), str(workspace / "src")))
    try:
        done = subprocess.run(
            args["command"],
            shell=True,
            cwd=workspace,
            env={**os.environ, "PATH": path, "PYTHONPATH": modules, "GRADER": str(private)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=max(1.0, deadline - time.time() - 2.0),
        )
    except subprocess.TimeoutExpired:
        raise Fail("the command took too long") from None
    if done.returncode != 0:
        raise Fail(f"the command ended with exit code {done.returncode}", done.stdout[-SHOWN:])
    for line in reversed(done.stdout.splitlines()):
        if found := re.findall(args.get("pattern") or NUMBER, line):
            return Result(float(found[-1]), feedback=done.stdout[-SHOWN:])
    raise Fail("the command printed no number", done.stdout[-SHOWN:])
