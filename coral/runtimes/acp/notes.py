"""What is kept of a conversation by the Agent Client Protocol: tools that are at work, and what it has used so far."""

import contextlib
import json
from pathlib import Path

from coral.runtimes.event import REPLY, Event

MAX_TOOLS = 1000
MAX_ITEMS, DEEPEST = 200, 12


class Tools:
    """An agent tells of a tool in parts, of which none needs to repeat what was said before."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, object]] = {}
        self._begun: set[str] = set()

    def merge(self, update: Event) -> Event:
        """The part with all that is known of its tool; `begins` is true of the first that is worth telling."""
        part, id = update.raw(), update.line("toolCallId", limit=200)
        assert isinstance(part, dict)
        told = {name: each for name, each in part.items() if each not in (None, [], {}, "")}
        whole = {**self._known.get(id, {}), **told}
        given = whole.get("rawInput")
        tells = given not in (None, {}) and (not isinstance(given, dict) or given.keys() != {"cwd"})
        begins = id not in self._begun and (tells or whole.get("status") != "pending")
        if begins:
            self._begun.add(id)
        if whole.get("status") in ("completed", "failed"):
            self._known.pop(id, None)
            self._begun.discard(id)
        else:
            self._known[id] = whole
        while len(self._known) > MAX_TOOLS:
            gone = next(iter(self._known))
            del self._known[gone]
            self._begun.discard(gone)
        return Event({**whole, "begins": begins})


class Bill:
    """What a conversation costs in US dollars: agents tell the sum since it began, in earlier launches too, so that the
    last one is kept for the next launch."""

    def __init__(self, state: Path) -> None:
        self._file = state / "acp-bill.json"
        self._session = ""
        self._before: float | None = None
        self._last: float | None = None

    def open(self, session: str, *, new: bool) -> None:
        """From here on it counts; what was told when it was loaded is its sum before."""
        self._session = session
        known = 0.0 if new else self._kept()
        self._before = known if self._last is None or new else self._last
        self._last = None

    def told(self, cost: Event) -> None:
        amount = cost.number("amount")
        if amount is None or amount < 0 or cost.raw("currency") not in ("USD", None):
            return
        self._last = amount
        if self._session:
            if self._before is None or amount < self._before:
                # Who does not count on over its launches has begun anew.
                self._before = amount if self._before is None else 0.0
            with contextlib.suppress(OSError):
                unfinished = self._file.with_suffix(".partial")
                unfinished.write_text(json.dumps({"session": self._session, "cost": amount}))
                unfinished.replace(self._file)

    @property
    def spent(self) -> float | None:
        """By this launch; None where it is not told."""
        return None if self._last is None or self._before is None else self._last - self._before

    def _kept(self) -> float | None:
        try:
            kept = Event(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, RecursionError):
            return None
        return kept.number("cost") if kept.raw("session") == self._session else None


class Steps:
    """What the answers of the model used, for agents that tell it with each of them and not at the end."""

    NAMES = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens", "thoughtTokens", "totalTokens")

    def __init__(self) -> None:
        self.sum: dict[str, int] | None = None

    def told(self, usage: Event) -> None:
        if usage:
            before = self.sum or dict.fromkeys(self.NAMES, 0)
            self.sum = {name: before[name] + usage.count(name) for name in self.NAMES}


def cut(value: object, depth: int = 0) -> object:
    """The same, with nothing in it that is too long for a log."""
    if isinstance(value, str):
        return value[:REPLY]
    if isinstance(value, list):
        return [cut(each, depth + 1) for each in value[:MAX_ITEMS]] if depth < DEEPEST else []
    if isinstance(value, dict):
        items = list(value.items())[:MAX_ITEMS] if depth < DEEPEST else []
        return {str(name)[:200]: cut(each, depth + 1) for name, each in items}
    return value
