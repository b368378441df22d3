"""Imports code of a task, named as `module:name`: its own brains, tools and gates."""

from importlib import import_module


def find_own(spec: str) -> object:
    """Return what `module:name` names. ValueError says what is missing."""
    module, colon, name = spec.partition(":")
    if not colon or not module or not name:
        raise ValueError(f"{spec!r} must be module:name")
    try:
        found: object = getattr(import_module(module), name)
    except (ImportError, SyntaxError, AttributeError) as problem:
        raise ValueError(f"cannot use {spec}: {problem}; it must be installed, or on PYTHONPATH") from problem
    return found
