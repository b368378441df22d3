"""Runs the built-in agent with a model, as a process in a workspace of its own, against the scripted model of the
tests, which takes no time and costs no money."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.arena import HERE, arena
from benchmarks.prompts import INSTRUCTIONS, PROMPTS, prompt_text

SECONDS = 60.0  # the time limit of everything that is waited for
READ = ("read_file", {"path": "notes.txt", "request_heartbeat": True})  # the call of a step; its result is long


def scripted_model() -> Any:
    """Import the module with the server and its steps: only measuring needs it, writing the page does not."""
    folder = str(HERE.parent / "tests" / "support")
    sys.path += [] if folder in sys.path else [folder]
    return import_module("model_server")


@dataclass(frozen=True, slots=True)
class Place:
    """The workspace and state of an agent, and the server of its model."""

    root: Path
    server: Any

    @property
    def clone(self) -> Path:
        return self.root / "clone"

    def launch(self, prompt: str, *, session: str, resume: bool) -> subprocess.Popen[bytes]:
        """Start the agent's process, and write its prompt to it."""
        options = json.dumps({"brain": "llm", "wire": "messages", "base_url": self.server.url, "max_steps": 1000})
        words = ["--session", session, "--state", str(self.root / "state"), "--model", "m", "--options", options]
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "coral.native", *words, *(["--resume"] if resume else [])],
            cwd=self.clone,
            env={**os.environ, "CORAL_RUN": str(self.root / "run"), "CORAL_AGENT": "agent-1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdin is not None
        child.stdin.write(prompt.encode())
        child.stdin.close()
        return child


@contextmanager
def model_place(server: Any) -> Iterator[Place]:
    """Make a workspace with an instruction file and a text to read, and run the server meanwhile."""
    with arena() as area, server:
        place = Place(area.root, server)
        place.clone.mkdir()
        (area.root / "run" / "attempts").mkdir(parents=True)
        (place.clone / "AGENTS.md").write_text(prompt_text(*PROMPTS[INSTRUCTIONS]), encoding="utf-8")
        (place.clone / "notes.txt").write_text("".join(f"line {line} of what there is\n" for line in range(220)))
        yield place
