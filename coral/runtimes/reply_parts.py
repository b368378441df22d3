"""Replies that come in pieces, put together: a word is judged as a whole, never by its last letters."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from attempts.fields import one_line
from coral.runtimes.model import OutputEvent

LONGEST = 20_000  # characters of a reply that are kept


class ReplyParts:
    """What one launch says."""

    def __init__(self) -> None:
        self._parts = ""

    def join(self, signs: Iterable[OutputEvent]) -> Iterator[OutputEvent]:
        """The signs, with a reply before the first that no longer belongs to it. What says nothing of the turn, such as
        a figure, may come in the midst of a word."""
        for sign in signs:
            if sign.part:
                self._parts = (self._parts + sign.part)[:LONGEST]
                yield replace(sign, part="", message=one_line(self._parts[-300:], 300))
            else:
                if sign.ended or sign.error or not sign.early:
                    yield from self.rest()
                yield sign

    def rest(self) -> Iterator[OutputEvent]:
        """What was said last, when nothing more comes."""
        said, self._parts = self._parts, ""
        if said.strip():
            yield OutputEvent(reply=said.strip())
