"""The data of an agent's lane, which shows over time its launches, its attempts, and what came of each heartbeat that
was due."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from operator import itemgetter

from coral.fleet.messages import WITHOUT_REPLY
from coral.views import format, transcript
from coral.views.transcript import EntryKind
from coral.web.attempts_data import number_in
from coral.web.reading import LenientJson, RunView, end_of, events, runtime_of

LANE_BYTES = 32_000_000  # of the end of the timeline
EVENTS = 1000  # of one agent
REPLIES = 8  # of an answer
LONGEST_REPLY = 4000  # characters
TYPES = ("published", "heartbeat", "interrupted", "withdrawn", "skipped", "spawned", "exited", "stalled", "crashed")

Json = dict[str, object]


def lane(view: RunView, agent: str) -> Json:
    """Return the lane of an agent. `items`: the oldest first, each with its `kind`, when it began (`at`) and ended
    (`end`, None if it has not ended or that is not known) in seconds of the run's clock, and a text. Of a long life
    only the end is returned; `begin` says from when on."""
    start = end_of(view.layout, LANE_BYTES)
    found = deque(events(view.layout, *TYPES, agent=agent, since=start), maxlen=EVENTS)
    life = _Life(view)
    for event in found:
        life.take(event)
    status = next(
        (status for status in view.status.objects("agents") if status.text("name", 80) == agent), LenientJson()
    )
    is_whole = not start and len(found) < EVENTS
    return {
        "begin": 0.0 if is_whole or not found else found[0].number("clock") or 0.0,
        "end": _now(view, found),
        "whole": is_whole,
        "pending": [format.line(name, 80) for name in status.texts("pending")],
        "items": [item for _, item in sorted(life.items, key=itemgetter(0))],
    }


def _now(view: RunView, found: Iterable[LenientJson]) -> float:
    """Return how many seconds the run has lasted; until its last event where status.json cannot be read."""
    clock = view.status.number("clock")
    if clock is None:
        clock = max((event.number("clock") or 0.0 for event in found), default=0.0)
    return clock + view.lateness


class _Life:
    """Combines an agent's events into items: a launch with its end, a heartbeat with its delivery."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._launch: Json | None = None
        self._interrupted: float | None = None  # when the present launch was interrupted
        self._working: list[Json] = []  # the heartbeats that the agent is answering
        self.items: list[tuple[float, Json]] = []  # (when it began, item)

    def take(self, event: LenientJson) -> None:
        at, kind = event.number("clock"), event.text("type", 40)
        if at is None:
            return
        match kind:
            case "spawned":
                self._launch = self._add("launch", at, event, launch=event.integer("launch"))
            case "exited":
                self._end_launch(at, event)
            case "published":
                self._attempt(at, event)
            case "interrupted":
                self._interrupted = at
                self._add("interrupt", at, event)
            case "stalled" | "crashed":
                self._add("trouble", at, event)
            case _:
                for message in event.objects("messages"):
                    self._heartbeat(at, "received" if kind == "heartbeat" else kind, event, message)

    def _add(self, kind: str, at: float, event: LenientJson, **more: object) -> Json:
        text = {"text": format.line(event.text("text", 400), 400), "when": format.run_clock(at)}
        item: Json = {"kind": kind, "at": at, "end": None, **text, **more}
        self.items.append((at, item))
        return item

    def _end_launch(self, at: float, event: LenientJson) -> None:
        self._end_work(at)
        if self._launch is not None and self._launch["launch"] == event.integer("launch"):
            ended = event.text("ending", 40)
            self._launch |= {"end": at, "took": _span(self._launch["at"], at), "ending": ended}
        self._launch = None

    def _attempt(self, at: float, event: LenientJson) -> None:
        self._end_work(at)
        number = event.integer("attempt")
        record = self._view.attempt_or_none(number)
        if number is not None and record is not None:
            score = format.score(record.score)
            self._add("attempt", at, event, number=number, verdict=record.verdict, score=score)

    def _end_work(self, at: float) -> None:
        """End the work on the received heartbeats: it ends with the agent's next attempt or with the launch."""
        for item in self._working:
            item |= {"end": at, "took": _span(item["received"], at)}
        self._working = []

    def _heartbeat(self, at: float, fate: str, event: LenientJson, message: LenientJson) -> None:
        attempt, name = message.integer("attempt"), format.line(message.text("name", 80), 80)
        known = message.number("since") if fate != "skipped" else at
        due = at if known is None else known
        fields = {
            "name": name,
            "attempt": attempt,
            "fate": fate,
            "clocked": attempt is None and name not in WITHOUT_REPLY,
        }
        item = self._add("heartbeat", due, event, **fields)
        if fate != "received":
            item |= {"end": at}
            return
        launch = None if self._launch is None else self._launch["launch"]
        cut = self._interrupted if self._interrupted is not None and self._interrupted >= due else None
        item |= {"received": at, "waited": _span(known, at), "interrupted": cut, "launch": launch}
        self._working.append(item)


def _span(start: object, end: float) -> str:
    return format.duration(end - start) if isinstance(start, float) else ""


def answer(view: RunView, agent: str, asked: Mapping[str, str]) -> Json:
    """Return the first replies of the agent in the launch `launch`, whose prompt had the heartbeats."""
    launch = number_in(asked, "launch", 0)
    found = transcript.entries(view.layout, agent, launch, runtime_of(view, agent, launch))
    replies = list(islice((entry for entry in found if entry.kind is EntryKind.REPLY), REPLIES + 1))
    texts = [format.clean(entry.text[:LONGEST_REPLY]) for entry in replies[:REPLIES]]
    return {"replies": texts, "more": len(replies) > REPLIES}
