"""Tracks a conversation for the client: the tool calls that are running, and the usage so far."""

import contextlib
import json
from pathlib import Path

from attempts.files import write_json
from coral.runtimes.json_object import REPLY, JsonObject

MAX_TOOLS = 1000
MAX_ITEMS, DEEPEST = 200, 12


class ToolCalls:
    """The running tool calls. An agent describes a call in several updates, which do not repeat each other."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, object]] = {}
        self._begun: set[str] = set()

    def merge(self, update: JsonObject) -> JsonObject:
        """Return the update with all that is known of its tool call. Its field `begins` is true in the first update
        that says what is called."""
        part, call = update.raw(), update.line("toolCallId", limit=200)
        assert isinstance(part, dict)
        given = {name: value for name, value in part.items() if value not in (None, [], {}, "")}
        whole = {**self._known.get(call, {}), **given}
        arguments = whole.get("rawInput")
        says_what = arguments not in (None, {}) and (not isinstance(arguments, dict) or arguments.keys() != {"cwd"})
        begins = call not in self._begun and (says_what or whole.get("status") != "pending")
        if begins:
            self._begun.add(call)
        if whole.get("status") in ("completed", "failed"):
            self._known.pop(call, None)
            self._begun.discard(call)
        else:
            self._known[call] = whole
        while len(self._known) > MAX_TOOLS:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._begun.discard(oldest)
        return JsonObject({**whole, "begins": begins})


class CostMeter:
    """Measures what a launch costs in US dollars. Agents report the sum since the conversation began, earlier launches
    included; so a file in `state` keeps the last sum for the next launch."""

    def __init__(self, state: Path) -> None:
        self._file = state / "acp-cost.json"
        self._session = ""
        self._before: float | None = None
        self._last: float | None = None

    def open(self, session: str, *, new: bool) -> None:
        """Begin to count. A sum that was reported while the conversation was loaded is that of earlier launches."""
        self._session = session
        known = 0.0 if new else self._kept()
        self._before = known if self._last is None or new else self._last
        self._last = None

    def take(self, cost: JsonObject) -> None:
        amount = cost.number("amount")
        if amount is None or amount < 0 or cost.raw("currency") not in ("USD", None):
            return
        self._last = amount
        if self._session:
            if self._before is None or amount < self._before:
                # A smaller sum: this agent does not include earlier launches.
                self._before = amount if self._before is None else 0.0
            with contextlib.suppress(OSError):
                write_json(self._file, {"session": self._session, "cost": amount}, durable=False)

    @property
    def spent(self) -> float | None:
        """The US dollars that this launch has spent; None if the agent did not report any."""
        return None if self._last is None or self._before is None else self._last - self._before

    def _kept(self) -> float | None:
        try:
            kept = JsonObject(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, RecursionError):
            return None
        return kept.number("cost") if kept.raw("session") == self._session else None


class StepUsage:
    """Adds up the usage of the model's answers, for agents that report it with each answer and not at the end."""

    NAMES = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens", "thoughtTokens", "totalTokens")

    def __init__(self) -> None:
        self.sum: dict[str, int] | None = None

    def take(self, usage: JsonObject) -> None:
        if usage:
            before = self.sum or dict.fromkeys(self.NAMES, 0)
            self.sum = {name: before[name] + usage.count(name) for name in self.NAMES}


def cut(value: object, depth: int = 0) -> object:
    """Return a value of JSON in which texts and lists that are too long for a log are shortened."""
    if isinstance(value, str):
        return value[:REPLY]
    if isinstance(value, list):
        return [cut(item, depth + 1) for item in value[:MAX_ITEMS]] if depth < DEEPEST else []
    if isinstance(value, dict):
        items = list(value.items())[:MAX_ITEMS] if depth < DEEPEST else []
        return {str(name)[:200]: cut(item, depth + 1) for name, item in items}
    return value
