"""Fills command lines with placeholders: {agent} {session} {model} {clone} {prompt_file} {state}.

Only these are replaced, and only once: other braces stay, and braces in a value are not replaced.
"""

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from coral.runtimes.model import LaunchSpec
from workspace.layout import Layout

PLACEHOLDERS = ("agent", "session", "model", "clone", "prompt_file", "state")
_PLACEHOLDER = re.compile(r"\{(" + "|".join(PLACEHOLDERS) + r")\}")


def words(value: object) -> tuple[str, ...]:
    """Return the arguments of a command: given as a list of texts, or as a line with a shell's quotes. ValueError says
    what is wrong."""
    if isinstance(value, str):
        found = shlex.split(value)
    elif isinstance(value, Sequence) and all(isinstance(word, str) for word in value):
        found = list(value)
    else:
        raise ValueError("must be a list of texts, or a line")
    if not found or not found[0].strip():
        raise ValueError("is empty")
    if any("\0" in word for word in found):
        raise ValueError("has a character that no argument can have")
    return tuple(found)


def problems(option: str, value: object) -> list[str]:
    """Return what is wrong with an option that is a command line. A program whose path depends on the agent is not
    looked for."""
    try:
        program = words(value)[0]
    except ValueError as error:
        return [f"{option} {error}"]
    if "{" not in program and (os.sep not in program or program.startswith(os.sep)) and not shutil.which(program):
        return [f"{option}: the program {program!r} is not on PATH"]
    return []


def account(runtime: str, command: object) -> str:
    """Return the account of agents whose program the task names: the login of another program is another account."""
    try:
        return f"{runtime} {Path(words(command)[0]).name}"
    except ValueError:  # `check` of the runtime says what is wrong with it
        return runtime


def values(spec: LaunchSpec, session: str) -> dict[str, str]:
    return {
        "agent": spec.agent,
        "session": session,
        "model": spec.model,
        "clone": str(spec.clone),
        "prompt_file": str(Layout(spec.run_root).prompt(spec.agent, spec.launch)),
        "state": str(spec.state),
    }


def fill(template: Sequence[str], known: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_PLACEHOLDER.sub(lambda match: known[match[1]], word) for word in template)


def has_placeholder(template: Sequence[str], placeholder: str) -> bool:
    return any(f"{{{placeholder}}}" in word for word in template)
