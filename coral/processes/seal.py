"""Seals a program at one of the levels of `workspace.seal`, and tells which of them this machine has."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from json import dumps

from coral.grader import landlock
from coral.grader.sandbox import landlock_rules
from coral.processes.process import Program
from workspace.seal import PROBE_SECONDS, Level, View, bubblewrap, bubblewrap_problem, with_devices


def strongest() -> Level:
    """The strongest level that works here."""
    return next(level for level in Level if not problem(level))


def problem(level: Level) -> str:
    """Why a level does not work here; empty if it does."""
    match level:
        case Level.BUBBLEWRAP:
            return bubblewrap_problem()
        case Level.LANDLOCK:
            return _landlock_problem()
        case Level.NONE:
            return ""


def seal(program: Program, level: Level, view: View, *, network: bool) -> Program:
    """The same program in a sandbox. `network`: whether it has that of the machine."""
    match level:
        case Level.BUBBLEWRAP:
            argv = bubblewrap(program.argv, view, program.cwd, network=network)
            return replace(program, argv=argv, sealed=True)
        case Level.LANDLOCK:
            # It restricts itself, and stays the process that it was: it is interrupted and ended as without a seal.
            return replace(program, argv=_landlocked(program.argv, view, network=network))
        case Level.NONE:
            return program


def _landlocked(argv: Sequence[str], view: View, *, network: bool) -> list[str]:
    shown = {str(path): str(access) for path, access in with_devices(view).items()}
    rules = landlock_rules(shown, network)
    return [sys.executable, "-I", "-S", "-B", landlock.__file__, dumps(rules), *argv]


@cache
def _landlock_problem() -> str:
    line = _landlocked(["true"], {}, network=True)
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=PROBE_SECONDS, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Landlock cannot be tried: {error}"
    last = next(reversed(done.stderr.strip().splitlines()), f"exit code {done.returncode}")
    return f"Landlock does not work here: {last}" if done.returncode else ""
