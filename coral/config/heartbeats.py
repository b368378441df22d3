"""The heartbeats a run starts with: the built-in ones, changed by the task's entries under heartbeats' own rules."""

from collections.abc import Iterable

from coral.config.model import HeartbeatEntry
from coral.config.problem import Problem
from heartbeats.folder import load_entries
from heartbeats.heartbeat import BUILT_IN, Heartbeat, HeartbeatError, merge

TRIGGERS = ("every", "stagnant", "minutes", "seconds")


def settle(entries: Iterable[tuple[int, HeartbeatEntry]], problems: list[Problem]) -> tuple[Heartbeat, ...]:
    """Lay the entries over the built-in heartbeats, one by one, so that each refusal has its place in the file."""
    merged, seen = BUILT_IN, dict[str, int]()
    for index, entry in entries:
        path = ("heartbeats", index)
        given = [name for name in TRIGGERS if getattr(entry, name) is not None]
        if entry.name in seen:
            problems.append(Problem((*path, "name"), f'"{entry.name}" has an entry already; keep one of them'))
        elif len(given) > 1:
            problems.append(
                Problem((*path, given[1]), f"gives both {given[0]} and {given[1]}; a heartbeat has one trigger")
            )
        else:
            merged = _lay(entry, merged, path, problems)
        seen[entry.name] = index
    return merged


def _lay(
    entry: HeartbeatEntry, over: tuple[Heartbeat, ...], path: tuple[str | int, ...], problems: list[Problem]
) -> tuple[Heartbeat, ...]:
    try:
        return merge(over, load_entries([entry.model_dump(mode="json", exclude_none=True)]))
    except HeartbeatError as error:
        hint = f" ({error.hint})" if error.hint else ""
        problems.append(Problem(path, f"{error}{hint}"))
    return over
