"""An agent with the brain `llm` in this process, in a folder of its own, that talks to a scripted model."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model_server import ModelServer

from coral.native.llm.agent import LlmAgent
from coral.native.llm.conversation import LlmMemory
from coral.native.llm.main import build
from coral.native.llm.outer import OuterLoop
from coral.native.llm.output import LlmOutput
from coral.native.llm.patience import Patience
from coral.native.llm.settings import LlmOptions
from coral.native.snapshots import Snapshots
from workspace.knowledge import create

GO, YIELD = {"request_heartbeat": True}, {"request_heartbeat": False}
KEY = "k-secret"


def base_url(server: ModelServer, wire: str) -> str:
    return server.url + ("/v1" if wire == "chat" else "")


def call(name: str, go: bool = True, /, **arguments: object) -> tuple[str, Mapping[str, object]]:
    """Return a tool call as a step of the script has it."""
    return name, {**arguments, **(GO if go else YIELD)}


class LlmDesk:
    """`a.py` and `big.txt` are in its workspace; retries and pauses do not wait."""

    def __init__(self, root: Path, server: ModelServer, wire: str = "chat", **options: object) -> None:
        self.root, self.server = root, server
        self.clone = root / "clone"
        if not self.clone.exists():
            self.clone.mkdir(parents=True)
            (self.clone / "a.py").write_text("x = 1\n")
            create(root / "shared")
            (self.clone / ".shared").symlink_to(root / "shared")
        self.options = LlmOptions.read({"wire": wire, "base_url": base_url(server, wire), **options})
        self.file = (root / "out.jsonl").open("a+b")
        self.agent: LlmAgent | None = None
        self.begin(resume=False)

    def begin(self, *, resume: bool) -> LlmAgent:
        """Begin a launch of the agent, in a new session or in the one that there was."""
        state = self.root / "state"
        snapshots = Snapshots.resume(state, "s-1", LlmMemory) if resume else Snapshots.create(state, "s-1", LlmMemory)
        assert snapshots is not None
        environment = {
            "PATH": os.environ["PATH"],
            "CORAL_AGENT": "agent-1",
            "OPENAI_API_KEY": KEY,
            "ANTHROPIC_API_KEY": KEY,
        }
        agent = build("m", self.options, snapshots, LlmOutput(self.file.fileno()), self.clone, environment)
        agent.perception.patience = Patience(agent.bench.output.retry, scale=0.0, sleep=lambda _: None)
        self.agent = agent
        return agent

    @property
    def memory(self) -> LlmMemory:
        return self.agent.memory

    def run(self, prompt: str = "Improve x.") -> str:
        """Run a launch until it ends by itself; returns why it ended."""
        self.agent.receive(prompt)
        return OuterLoop(self.agent, sleep=lambda _: None).run()

    def printed(self, kind: str) -> list[dict[str, Any]]:
        self.file.seek(0)
        return [line for line in map(json.loads, self.file.read().splitlines()) if line["type"] == kind]

    def results(self) -> list[dict[str, Any]]:
        """Return the tool calls that have ended, in order."""
        return [line["tool"] for line in self.printed("tool") if line["tool"]["over"]]

    def close(self) -> None:
        self.file.close()
