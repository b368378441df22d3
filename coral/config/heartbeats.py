"""The heartbeats that a run starts with: the built-in ones, changed by the section `heartbeats` of the task."""

from coral.config.model import HeartbeatEntry
from coral.config.problem import KeyPath, Problem, shown
from coral.config.validate import section
from heartbeats.folder import load_entries
from heartbeats.heartbeat import BUILT_IN, Heartbeat, HeartbeatError, merge

TRIGGERS = ("every", "stagnant", "minutes", "seconds")


def read_heartbeats(values: object, problems: list[Problem]) -> tuple[Heartbeat, ...]:
    """Merge the entries into the built-in heartbeats one by one, so that each refusal has its place in the file."""
    if values is None:
        return BUILT_IN
    if not isinstance(values, list):
        problems.append(Problem(("heartbeats",), f"must be a list of entries, each with a name; got {shown(values)}"))
        return BUILT_IN
    merged, seen = BUILT_IN, set[str]()
    for index, value in enumerate(values):
        where = ("heartbeats", index)
        entry = section(HeartbeatEntry, value, where, problems)
        if entry is None:
            continue
        triggers = [name for name in TRIGGERS if getattr(entry, name) is not None]
        if entry.name in seen:
            problems.append(Problem((*where, "name"), f'"{entry.name}" has an entry already; keep one of them'))
        elif len(triggers) > 1:
            text = f"gives both {triggers[0]} and {triggers[1]}; a heartbeat has one trigger"
            problems.append(Problem((*where, triggers[1]), text))
        else:
            merged = _merged(merged, entry, where, problems)
        seen.add(entry.name)
    return merged


def _merged(
    heartbeats: tuple[Heartbeat, ...], entry: HeartbeatEntry, where: KeyPath, problems: list[Problem]
) -> tuple[Heartbeat, ...]:
    try:
        return merge(heartbeats, load_entries([entry.model_dump(mode="json", exclude_none=True)]))
    except HeartbeatError as error:
        problems.append(Problem(where, f"{error} ({error.hint})" if error.hint else str(error)))
        return heartbeats
