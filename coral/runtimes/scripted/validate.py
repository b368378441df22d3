"""Finds the problems of a script before anything is started."""

from collections.abc import Callable, Mapping
from signal import Signals
from typing import Any, TypeGuard

from coral.runtimes.coral_protocol import unknown
from coral.runtimes.scripted.script import repeat, split


def problems(script: object, at: str = "script") -> list[str]:
    """Return the problems of a script, as sentences that name the step."""
    if not isinstance(script, list | tuple):
        return [f"{at} must be a list of steps"]
    if not script:
        return [f"{at} has no steps"]
    found = []
    for index, step in enumerate(script, 1):
        found += _step_problems(step, f"{at}, step {index}")
    return found


def _step_problems(step: object, at: str) -> list[str]:
    if not isinstance(step, str | Mapping) or (isinstance(step, Mapping) and len(step) != 1):
        return [f"{at} must be one name, or one name with its value"]
    name, value = split(step)
    if name == "repeat":
        given = value if isinstance(value, Mapping) else {}
        times = given.get("times", 1)
        whole = times is None or (isinstance(times, int) and _is_number(times) and times > 0)
        wrong = [] if whole else ["times must be a whole number from 1"]
        wrong += unknown(map(str, given), ("steps", "times"))
        return [f"{at}: repeat: {line}" for line in wrong] + problems(repeat(value)[0], f"{at}, repeat")
    if name not in _CHECKS:
        return [f"{at}: {line}" for line in unknown([name], [*_CHECKS, "repeat"])]
    wrong_value = _CHECKS[name](value)
    return [f"{at}: {name} {wrong_value}"] if wrong_value else []


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _unknown(value: Mapping[Any, object], *known: str) -> str:
    return "; ".join(unknown(map(str, value), known))


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "needs a text"


def _seconds(value: object) -> str:
    return "" if _is_number(value) and value < 1e9 else "needs seconds"


def _edit(value: object) -> str:
    if not isinstance(value, Mapping) or not isinstance(value.get("file"), str):
        return "needs a file"
    ways = [way for way in ("content", "append", "replace") if way in value]
    if len(ways) != 1:
        return "needs one of content, append, replace"
    if ways == ["replace"]:
        pair = value["replace"]
        fits = isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(text, str) for text in pair)
        return "" if fits else "needs [old, new] in replace"
    return _text(value[ways[0]]) or _unknown(value, "file", "content", "append")


def _submit(value: object) -> str:
    if not isinstance(value, Mapping):
        return _text(value)
    return _unknown(value, "message", "wait", "again", "tune", "timeout") or _text(value.get("message"))


def _fork(value: object) -> str:
    given = {} if value is None else value
    return _unknown(given, "seconds", "session", "deaf") if isinstance(given, Mapping) else "needs options"


def _signals(value: object) -> str:
    names = [value] if isinstance(value, str) else value
    fits = isinstance(names, list | tuple) and all(f"SIG{name}" in Signals.__members__ for name in names)
    return "" if fits else "needs names of signals, such as INT"


def _crash(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "" if 0 <= value < 256 else "needs an exit code from 0 to 255"
    return _signals(value) if isinstance(value, str) else "needs an exit code or a signal"


def _use(value: object) -> str:
    if not isinstance(value, Mapping):
        return "needs input, output, cached or cost"
    wrong = "" if all(map(_is_number, value.values())) else "needs numbers"
    return _unknown(value, "input", "output", "cached", "cost") or wrong


_CHECKS: Mapping[str, Callable[[object], str]] = {
    **dict.fromkeys(("print", "say"), _text),
    **dict.fromkeys(("retry", "sleep", "busy"), _seconds),
    **{"use": _use, "edit": _edit, "submit": _submit, "fork": _fork, "ignore": _signals, "crash": _crash},
    "hang": lambda value: "" if value is None else "takes no value",
}
