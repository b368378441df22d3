"""Finds the problems of a script before anything is started."""

from collections.abc import Callable, Mapping
from signal import Signals

from coral.runtimes.coral_protocol import unknown
from coral.runtimes.scripted.script import repeat, split


def problems(script: object, at: str = "script") -> list[str]:
    """Sentences that name the step."""
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
        times = value.get("times") if isinstance(value, Mapping) else None
        wrong = [] if times is None or _whole(times) else [f"{at}: repeat: times must be a whole number from 1"]
        extra = _options(value, "steps", "times")
        return wrong + [f"{at}: repeat: {line}" for line in extra] + problems(repeat(value)[0], f"{at}, repeat")
    if name not in _CHECKS:
        return [f"{at}: {line}" for line in unknown([name], [*_CHECKS, "repeat"])]
    wrong_value = _CHECKS[name](value)
    return [f"{at}: {name} {wrong_value}"] if wrong_value else []


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _options(value: object, *known: str) -> list[str]:
    return unknown(map(str, value), known) if isinstance(value, Mapping) else []


def _text(value: object) -> str:
    return "" if isinstance(value, str) else "needs a text"


def _seconds(value: object) -> str:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return "" if fits else "needs seconds"


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
    return _text(value[ways[0]]) or "; ".join(_options(value, "file", "content", "append"))


def _submit(value: object) -> str:
    if isinstance(value, Mapping):
        extra = _options(value, "message", "wait", "again", "tune", "timeout")
        return "; ".join(extra) or _text(value.get("message"))
    return _text(value)


def _fork(value: object) -> str:
    if value is None:
        return ""
    return "; ".join(_options(value, "seconds", "session", "deaf")) if isinstance(value, Mapping) else "needs options"


def _signals(value: object) -> str:
    names = [value] if isinstance(value, str) else value
    fits = isinstance(names, list | tuple) and all(f"SIG{name}" in Signals.__members__ for name in names)
    return "" if fits else "needs names of signals, such as INT"


def _crash(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return "" if 0 <= value < 256 else "needs an exit code from 0 to 255"
    return _signals(value) if isinstance(value, str) else "needs an exit code or a signal"


def _nothing(value: object) -> str:
    return "" if value is None else "takes no value"


def _use(value: object) -> str:
    if not isinstance(value, Mapping):
        return "needs input, output, cached or cost"
    figures = value.values()
    numbers = all(
        isinstance(figure, int | float) and not isinstance(figure, bool) and figure >= 0 for figure in figures
    )
    return "; ".join(_options(value, "input", "output", "cached", "cost")) or ("" if numbers else "needs numbers")


_CHECKS: Mapping[str, Callable[[object], str]] = {
    "print": _text,
    "say": _text,
    "use": _use,
    "retry": _seconds,
    "sleep": _seconds,
    "busy": _seconds,
    "hang": _nothing,
    "edit": _edit,
    "submit": _submit,
    "fork": _fork,
    "ignore": _signals,
    "crash": _crash,
}
