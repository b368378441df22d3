"""Imports code of a task, named as `module:name`: its own runtimes, and the brains, tools and gates of the native
agent."""

from pkgutil import resolve_name

from attempts.fields import one_line

LONGEST = 300  # characters of what foreign code says


def find_own(kind: str, spec: str) -> object:
    """Return what `module:name` names. ValueError says what is missing, or what its module raises. `kind`: what it
    should be, such as a gate."""
    if not all(spec.partition(":")):
        raise ValueError(f"cannot use the {kind} {spec!r}: it must be module:name")
    try:
        return resolve_name(spec)
    except (Exception, SystemExit) as problem:  # it is not our code
        hint = "; it must be installed, or on PYTHONPATH" if isinstance(problem, ImportError) else ""
        raise ValueError(f"cannot use the {kind} {spec!r}: {in_words(problem)}{hint}") from problem


def in_words(problem: BaseException) -> str:
    """Say in one line what foreign code raised: with the kind of error, for the text alone may be a bare name."""
    return one_line(f"{type(problem).__name__}: {problem}", LONGEST)
