"""The seat of the brain: a policy from situation and signal to calls. Pure - it looks at nothing and does nothing.

`search` needs no model. A brain that asks a model for its calls takes the same seat.
"""

from __future__ import annotations

from typing import Protocol

from coral.native.calls import Call
from coral.native.search_brain import SearchBrain
from coral.native.situation import Event, Situation


class Brain(Protocol):
    def reason(self, situation: Situation, event: Event) -> tuple[Call, ...]:
        """What to do about an event. A call that fails comes back as `Trouble`, so that it can be put right."""
        ...


BRAINS: dict[str, type[Brain]] = {"search": SearchBrain}
