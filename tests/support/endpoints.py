"""How each agent program is told that its model is the scripted one: what a user with an endpoint of their own sets.

Nothing here is about Coral: the variables, the files in the home and the options are the user's.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_programs import PROGRAMS, UNPACKED

KEY = "sk-scripted"
MODEL = "mock-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """What the user has set. `env`: with {home} for the home. `files`: in the home, their content as JSON."""

    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    model: str = ""

    def furnish(self, home: Path) -> None:
        for name, content in self.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text(content if isinstance(content, str) else json.dumps(content))


def _claude(url: str) -> Endpoint:
    return Endpoint(env={"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY})


def _codex(url: str) -> Endpoint:
    config = (
        f'model = "{MODEL}"\nmodel_provider = "mock"\n'
        f'[model_providers.mock]\nname = "mock"\nbase_url = "{url}/v1"\nenv_key = "MOCK_KEY"\nwire_api = "responses"\n'
    )
    return Endpoint(env={"MOCK_KEY": KEY}, files={".codex/config.toml": config})


def _opencode(url: str) -> Endpoint:
    model = {"name": "mock", "limit": {"context": 200_000, "output": 8000}, "cost": {"input": 1, "output": 2}}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "mock",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {MODEL: {**model, "tool_call": True}},
    }
    names = {"model": f"mock/{MODEL}", "small_model": f"mock/{MODEL}"}
    config = {**names, "share": "disabled", "permission": "allow", "provider": {"mock": provider}}
    # As if it had been used before: its package for plugins is there, and it does not ask the package index.
    plugins = {"dependencies": {"@opencode-ai/plugin": "*"}}
    files = {
        "opencode.json": config,
        "models.json": {},  # in place of all the models of the world, which take a second or two to read
        "package.json": plugins,
        "package-lock.json": {"lockfileVersion": 3, "packages": {"": plugins}},
        "node_modules/.package-lock.json": {"lockfileVersion": 3, "packages": {}},
    }
    return Endpoint(
        env={"OPENCODE_MODELS_PATH": "{home}/.config/opencode/models.json"},
        files={f".config/opencode/{name}": content for name, content in files.items()},
        model=f"mock/{MODEL}",
    )


def _gemini(url: str) -> Endpoint:
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    return Endpoint(
        env={"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": KEY},
        files={".gemini/settings.json": settings},
        model="gemini-2.5-pro",
    )


def _qwen(url: str) -> Endpoint:
    return Endpoint(env={"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL}, model=MODEL)


def _copilot(url: str) -> Endpoint:
    names = {"BASE_URL": f"{url}/v1", "API_KEY": KEY}
    env = {f"COPILOT_PROVIDER_{name}": value for name, value in names.items()}
    # As where it was used before: else each home gets hundreds of megabytes first. Runs that do not give agents this
    # option have agents that unpack it for themselves.
    unpacked = {"COPILOT_PKG_CACHE_HOME": str(PROGRAMS["copilot"].home / UNPACKED)}
    env |= {"COPILOT_MODEL": MODEL, **unpacked}
    return Endpoint(env=env, options={"keep": list(unpacked)}, model=MODEL)


def _pi(url: str) -> Endpoint:
    model = {
        "id": MODEL,
        "name": "mock",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 200_000,
        "maxTokens": 8000,
    }
    mock = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
    return Endpoint(files={".pi/agent/models.json": {"providers": {"mock": mock}}}, model=f"mock/{MODEL}")


ENDPOINTS: Mapping[str, Callable[[str], Endpoint]] = {
    "claude": _claude,
    "codex": _codex,
    "opencode": _opencode,
    "gemini": _gemini,
    "qwen": _qwen,
    "copilot": _copilot,
    "pi": _pi,
}
