"""What a launch imports before it asks its model for the first time: a structure, where a time would depend on the
machine. `python -m benchmarks llm` measures the time."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from llm_agent import base_url
from model_server import ModelServer, Step

from coral.native.llm.main import EXIT_FAILED

# The process itself, that says in the end what it has imported. It ends with its first request: the key is refused.
CODE = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from coral.native.main import main
raise SystemExit(main())
"""
LATER = ("pydantic", "pydantic_core", "coral.native.llm.tools", "coral.native.situation", "coral.native.memory")
LATER += ("coral.native.coral_command", "coral.native.search", "coral.config", "scipy", "numpy", "asyncio", "certifi")


@pytest.mark.parametrize("wire", ["chat", "messages"])
def test_no_tool_and_no_pydantic_comes_before_the_first_request(wire: str, tmp_path: Path) -> None:
    with ModelServer([Step(error="denied", times=2)]) as server:
        options = json.dumps({"brain": "llm", "wire": wire, "base_url": base_url(server, wire)})
        words = ["--session", "s-1", "--state", str(tmp_path / "state"), "--model", "m", "--options", options]
        for resume in ([], ["--resume"]):
            done = subprocess.run(
                [sys.executable, "-P", "-c", CODE, *words, *resume],
                input="go",
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == EXIT_FAILED
            modules = json.loads(done.stderr.splitlines()[-1])
            assert "http.client" in modules
            early = [name for name in modules if any(name == late or name.startswith(f"{late}.") for late in LATER)]
            assert early == []
        assert len(server.asked) == 2
        assert {"send_message", "submit"} <= offered(server.asked[0].body, wire)


def offered(body: dict[str, object], wire: str) -> set[str]:
    tools = [tool["function"] if wire == "chat" else tool for tool in body["tools"]]  # type: ignore[index,attr-defined]
    return {tool["name"] for tool in tools}
