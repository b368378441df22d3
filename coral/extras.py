"""The optional dependencies, by extra, and the command that installs them into the environment that Coral runs in.

The command names the packages themselves: if Coral was installed from a clone or a wheel, pip finds Coral's extras only
with the path to that.
"""

import shlex
import sys
from importlib.util import find_spec

PACKAGES = {
    "acp": ("agent-client-protocol>=0.12.1,<1",),
    "notify": ("apprise>=1.9,<2",),
    "pandas": ("pandas>=2.2,<4",),
    "plot": ("matplotlib>=3.9,<4",),
    "prices": ("genai-prices>=0.2,<1",),
    "ray": ("ray>=2.60,<3",),
    "search": ("scipy>=1.15,<2", "cma>=4,<5"),
    "slurm": ("submitit>=1.5.3,<2",),
    "ui": ("starlette>=1,<2", "uvicorn>=0.40,<1", "sse-starlette>=3,<4", "pygments>=2.18,<3"),
}


def installs(extra: str) -> str:
    """Return the shell command that installs an extra; with uv if the environment has no pip, as one that uv made."""
    begin = [sys.executable, "-m", "pip", "install"]
    if find_spec("pip") is None:
        begin = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*begin, *PACKAGES[extra]])
