"""The environment that git gets from us: nothing of the caller's git settings, nothing that starts another program.

Rule: every git that Coral starts, the supervisor's or the agent's, gets `environment()` and `FLAGS`, so that a variable
set by a hook (`GIT_DIR`), a user's configuration or a planted one changes neither where git writes nor what it runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

# Hooks and the file monitor are programs that a repository names: they would run as whoever calls git. A commit graph
# and a multi-pack index are what a repository says about its objects: it may lie, and its owner is an agent.
_OVERRIDES = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "core.commitGraph=false", "core.multiPackIndex=false")
FLAGS = tuple(word for setting in _OVERRIDES for word in ("-c", setting))

SETTINGS: Mapping[str, str] = {
    "LC_ALL": "C",  # messages are compared
    "LANGUAGE": "C",
    # The first two name the user's configuration for every git, the others for git 2.32 and later.
    "HOME": "/dev/null",
    "XDG_CONFIG_HOME": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # reading must not fight the agent for its index
    # What refs/replace, grafts and a shallow file pretend is not what was committed.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
    # A missing object of a "partial clone" would be fetched by a command that the repository's configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


def identity(name: str) -> dict[str, str]:
    """The author and committer `name`; `.invalid` never resolves, so nobody's address is claimed."""
    email = f"{name or 'nobody'}@coral.invalid"
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
    }


def without_git(variables: Mapping[str, str]) -> dict[str, str]:
    """`variables` without any GIT_*: GIT_DIR, set inside every hook, redirects git to another repository."""
    return {name: value for name, value in variables.items() if not name.startswith("GIT_")}


def environment(**variables: str | Path) -> dict[str, str]:
    """The whole environment of one git process."""
    return {**without_git(os.environ), **SETTINGS, **{name: str(value) for name, value in variables.items()}}
