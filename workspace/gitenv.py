"""The environment and flags of every git that Coral starts, for the supervisor or for an agent.

They make sure that neither a variable set by a hook (`GIT_DIR`), nor a user's configuration, nor one that an agent
wrote changes where git writes or what programs it runs.
"""

import os
from collections.abc import Mapping
from pathlib import Path

# Hooks and the file monitor are programs that a repository names: they would run as the user who calls git. A commit
# graph and a multi-pack index are statements of a repository about its objects, and an agent may have forged them.
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
    # refs/replace and grafts show other commits than were committed.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
    # A missing object of a "partial clone" would be fetched by a command that the repository's configuration names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
}


def identity(name: str) -> dict[str, str]:
    """Return the variables that make `name` author and committer; `.invalid` never resolves, so the address is
    nobody's."""
    email = f"{name or 'nobody'}@coral.invalid"
    return {
        f"GIT_{role}_{key}": value
        for role in ("AUTHOR", "COMMITTER")
        for key, value in (("NAME", name), ("EMAIL", email))
    }


def environment(**variables: str | Path) -> dict[str, str]:
    """Return the whole environment of one git process. Inherited GIT_* variables are left out: inside a hook they name
    another repository."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**inherited, **SETTINGS, **{name: str(value) for name, value in variables.items()}}
