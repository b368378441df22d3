"""Makes the request that changes a budget of a running run, from `budget.hours=12` as an operator writes it."""

import math

from coral.errors import CoralError

SECTION = "budget."
NO_LIMIT, AS_TASK = "none", "task"
HINT = "coral set budget.hours=12"


def set_request(setting: str) -> dict[str, object]:
    """Return the request. CoralError if the setting is no budget or its value no number; whether there is such a budget
    is only known to the supervisor."""
    key, equals, value = setting.partition("=")
    if not equals:
        raise CoralError(f"cannot set {setting!r}: it lacks a value", HINT)
    if not key.startswith(SECTION):
        hint = "only budgets can be set while the run goes on; the rest by `coral stop` and `coral resume KEY=VALUE`"
        raise CoralError(f"cannot set {key}", hint)
    request: dict[str, object] = {"type": "set_budget", "key": key.removeprefix(SECTION)}
    if value == AS_TASK:
        return {**request, "as_task": True}
    return {**request, "limit": None if value == NO_LIMIT else _number(key, value)}


def _number(key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number * 3600):  # in seconds, too
        raise CoralError(f"cannot set {key} to {value!r}: it is no number", f"{HINT}, or `none` for no limit")
    return number
