"""The environment that agents and graders start with.

Agents get the user's, without CORAL_* variables and those that redirect git. Graders get only the variables of the user
that are named here: a candidate may read them, so no keys.
"""

import os
import sys
from collections.abc import Collection
from pathlib import Path

from workspace.layout import Layout

# Logins of a cluster and its address: the process that grades there needs them, and agents must not have them.
_OF_CLUSTERS = ("RAY_AUTH_", "RAY_ADDRESS")
KEPT = ("CORAL_TOOL_SECONDS",)  # how long `coral eval` may wait: the user knows the agent program


# What programs need to run at all, and to compute: places, the language, libraries, threads, graphics cards.
_NAMES = """
PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM NO_COLOR VIRTUAL_ENV LD_LIBRARY_PATH
JAVA_HOME GOPATH GOROOT CARGO_HOME RUSTUP_HOME CONDA_PREFIX CONDA_DEFAULT_ENV
NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES TF_CPP_MIN_LOG_LEVEL TF_FORCE_GPU_ALLOW_GROWTH TORCH_HOME
"""
GRADER_NAMES = frozenset(_NAMES.split())
GRADER_PREFIXES = ("LC_", "PYTHON", "DYLD_", "CUDA_", "ROCR_", "HIP_", "OMP_", "MKL_", "OPENBLAS_", "NUMEXPR_", "XLA_")


def of_grader(more: Collection[str]) -> dict[str, str]:
    """Return the environment of a grader. `more`: names of further variables that the task's grader needs."""
    return {
        name: value
        for name, value in base().items()
        if name in GRADER_NAMES or name in more or name.startswith(GRADER_PREFIXES)
    }


def base() -> dict[str, str]:
    """Return the user's environment without GIT_* (which redirects every git) and CORAL_* (of an outer run)."""
    return {
        name: value for name, value in os.environ.items() if name in KEPT or not name.startswith(("GIT_", "CORAL_"))
    }


def of_agent(layout: Layout, agent: str, direction: str) -> dict[str, str]:
    """Return the environment of an agent's program. `coral` is found first in the folder of the interpreter that
    supervises, so that the agent uses the same version. `direction`: that of the score, which a sealed agent can read
    nowhere else."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    own = {"CORAL_RUN": str(layout.root), "CORAL_AGENT": agent, "CORAL_DIRECTION": direction}
    own |= {"CORAL_BEATS": str(layout.pulses(agent))}
    users = {name: value for name, value in base().items() if not name.startswith(_OF_CLUSTERS)}
    return {**users, "PATH": path, **own}
