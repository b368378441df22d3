"""What happened while the journal could not be written, kept for when it can: all that counts, and no more than that.

Days of it must not grow without end: of what a launch says again and again, the last word is enough.
"""

from collections.abc import Iterable

from coral.fleet import events as on
from heartbeats.reply import Other, parse_reply


def kept(events: Iterable[on.Event]) -> list[on.Event]:
    """The events in their order, without those that a later one of the same launch makes superfluous."""
    found = list(events)
    last = {key: place for place, event in enumerate(found) if (key := _again(event)) is not None}
    return [event for place, event in enumerate(found) if (key := _again(event)) is None or last[key] == place]


def _again(event: on.Event) -> tuple[str, str, int, str] | None:
    """What it tells of, where only the newest figure or word of it counts."""
    match event:
        case on.OutputSeen(agent=agent, launch=launch, reply=reply) if isinstance(parse_reply(reply), Other):
            return ("heard", agent, launch, "")
        case on.Used(agent=agent, launch=launch, session=session):
            return ("used", agent, launch, session)
        case _:
            return None
