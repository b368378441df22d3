"""Translates the names that tasks of the other CORAL have for agent programs and their options (docs/import.md)."""

from collections.abc import Iterator, Mapping

DEFAULT = "claude_code"
_NAMES = {
    "claude": ("claude_code", "claude", "claude-code"),
    "codex": ("codex", "openai", "openai-codex"),
    "cursor": ("cursor_agent", "cursor", "cursor-agent"),
    "kiro": ("kiro", "kiro-cli"),
    "opencode": ("opencode", "open-code"),
}
_OPTIONS = {"model_reasoning_effort": "effort"}


def runtime_of(name: str) -> str:
    """Return our name of the program; empty if we have none."""
    return next((ours for ours, names in _NAMES.items() if name.lower() in names), "")


def options_of(given: Mapping[str, object]) -> tuple[dict[str, object], Iterator[str]]:
    """Return our options for the given ones, and the names of the given ones that have no counterpart."""
    known = {ours: given[name] for name, ours in _OPTIONS.items() if name in given}
    return known, (name for name in given if name not in _OPTIONS)
