"""Joins replies that come in pieces: a reply is understood as a whole, never by its last letters."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from attempts.fields import one_line
from coral.runtimes.model import OutputEvent

LONGEST = 20_000  # characters of a reply that are kept


class ReplyParts:
    """The replies of one launch."""

    def __init__(self) -> None:
        self._parts = ""

    def join(self, events: Iterable[OutputEvent]) -> Iterator[OutputEvent]:
        """The events, with each reply before the first event that is not a part of it. An early event, such as one of
        usage, may come in the middle of a reply."""
        for event in events:
            if event.part:
                self._parts = (self._parts + event.part)[:LONGEST]
                yield replace(event, part="", message=one_line(self._parts[-300:], 300))
            else:
                if event.ended or event.error or not event.early:
                    yield from self.rest()
                yield event

    def rest(self) -> Iterator[OutputEvent]:
        """The last reply, when no more events come."""
        reply, self._parts = self._parts, ""
        if reply.strip():
            yield OutputEvent(reply=reply.strip())
