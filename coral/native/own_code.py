"""Imports code of a task, named as `module:name`: its own brains, tools and gates."""

from pkgutil import resolve_name


def find_own(spec: str) -> object:
    """Return what `module:name` names. ValueError says what is missing."""
    if not all(spec.partition(":")):
        raise ValueError(f"{spec!r} must be module:name")
    try:
        return resolve_name(spec)
    except (Exception, SystemExit) as problem:  # it is not our code
        raise ValueError(f"cannot use {spec}: {problem}; it must be installed, or on PYTHONPATH") from problem
