"""The spec of one launch, as a supervisor makes it; only the fields that a test is about are given."""

from pathlib import Path
from typing import Any

from coral.runtimes.model import LaunchSpec

RUN = Path("/runs/t/20250101-000000-abcd")


def launch_spec(session: str | None = None, root: Path = RUN, **fields: Any) -> LaunchSpec:
    given = {
        "agent": "agent-1",
        "launch": 2,
        "session": session,
        "clone": root / "workspace/agents/agent-1",
        "state": root / "workspace/state/agent-1",
        "run_root": root,
    }
    return LaunchSpec(**{**given, **fields})
