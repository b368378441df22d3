"""All records of a run, read one by one. The product never needs that: it knows what changed."""

from attempts.record import Attempt
from attempts.store import Malformed, Missing, Store


def readable(store: Store) -> list[Attempt]:
    """Return every record that can be read, by number; `unreadable` names the others."""
    return [found for found in _each(store) if isinstance(found, Attempt)]


def unreadable(store: Store) -> list[int]:
    return [found for found in _each(store) if not isinstance(found, Attempt)]


def _each(store: Store) -> list[Attempt | int]:
    found: list[Attempt | int] = []
    for number in store.numbers():
        try:
            found.append(store.read(number))
        except (Missing, Malformed):
            found.append(number)
    return found
