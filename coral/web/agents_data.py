"""The data of the page about one agent: its heartbeats in force, what came of each, and its conversations."""

import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice

from coral.errors import CoralError
from coral.views import format, transcript
from coral.views.transcript import EntryKind, TranscriptEntry
from coral.web import lane_data
from coral.web.attempts_data import number_in
from coral.web.reading import (
    LenientJson,
    RunView,
    due_of,
    end_of_launch,
    label_of,
    runtime_of,
    text_of,
)
from heartbeats.folder import FLEET, Folder
from heartbeats.heartbeat import CHANGEABLE

ENTRIES = 200  # of a conversation, at once
LONGEST_ENTRY = 20_000  # characters

Json = dict[str, object]


def heartbeats(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return the heartbeats in force of the fleet and of one agent, and the agent's lane. Without `agent` among the
    parameters it is the first agent."""
    names = view.agents()
    agent = _named(names, asked.get("agent", "")) if names else ""
    folder = Folder(view.layout.heartbeats)
    owners = [FLEET, *([agent] if agent else [])]
    rows = [(owner, LenientJson(row)) for owner in owners for row in folder.read(owner)]
    return {
        "agents": names,
        "agent": agent,
        "heartbeats": [_heartbeat(view, owner, row) for owner, row in rows],
        "lane": lane_data.lane(view, agent) if agent else None,
    }


def _named(names: list[str], wanted: str) -> str:
    if wanted and wanted not in names:
        raise CoralError(f"cannot find the agent {wanted[:80]!r}", f"its agents: {', '.join(names[:20])}")
    return wanted or names[0]


def _heartbeat(view: RunView, owner: str, row: LenientJson) -> Json:
    return {
        "owner": owner,
        "name": row.text("name", 80),
        "when": row.text("when", 200),
        "next": due_of(view, owner, row),
        "delivery": row.text("delivery", 40),
        "by": row.text("by", 80),
        "trigger": next((name for name in ("every", "stagnant") if row.number(name) is not None), "minutes"),
        "may": CHANGEABLE if row.data.get("protected") is True else "",
        "prompt": format.clean(row.data.get("prompt") or "")[:LONGEST_ENTRY],
    }


def answer(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return what an agent said to the heartbeats in the prompt of a launch. CoralError if there is no such agent."""
    return lane_data.answer(view, _named(view.agents(), asked.get("agent", "")), asked)


def conversation(view: RunView, asked: Mapping[str, str]) -> Json:
    """Return a part of a launch's conversation: the last entries, or those before the entry `before`; with `text`, only
    entries that contain it. If `seen`, the size of the output that the page has, is still its size, the entries are
    left out. CoralError if there is no such agent or launch."""
    agent = _named(view.agents(), asked.get("agent", "")) if view.agents() else ""
    launches = transcript.launches(view.layout, agent) if agent else []
    about: Json = {"agents": view.agents(), "agent": agent, "launches": launches}
    if not launches:
        return {**about, "launch": None, "entries": [], "first": 0, "total": 0, "size": 0}
    launch = number_in(asked, "launch", launches[-1])
    if launch not in launches:
        raise CoralError(f"cannot show launch {launch} of {agent}: there is no such launch", "choose another")
    size = _size(view, agent, launch)
    if asked.get("seen") == str(size):
        return {**about, "launch": launch, "same": True, "size": size}
    first, shown, total = _part(view, agent, launch, asked)
    history = transcript.launch_history(view.layout, agent)
    entries = [
        _entry(entry, end_of_launch(entry, history, view) if entry.kind is EntryKind.END else text_of(entry))
        for entry in shown
    ]
    reason = history.reasons.get(launch, "")
    return {
        **about,
        "launch": launch,
        "reason": reason,
        "entries": entries,
        "first": first,
        "total": total,
        "size": size,
    }


def _part(view: RunView, agent: str, launch: int, asked: Mapping[str, str]) -> tuple[int, list[TranscriptEntry], int]:
    """Return the place of the first entry of a part, its entries, and the number of all entries. Only one part is held
    in memory."""
    found = transcript.entries(view.layout, agent, launch, runtime_of(view, agent, launch))
    text = asked.get("text", "")[:200].casefold()
    matching = (entry for entry in found if not text or text in f"{entry.tool} {entry.text}".casefold())
    numbered = enumerate(matching)
    before = number_in(asked, "before", 0)
    last = deque(islice(numbered, before or None), maxlen=ENTRIES)
    end = last[-1][0] + 1 if last else 0
    return (last[0][0] if last else 0), [entry for _, entry in last], end + sum(1 for _ in numbered)


def _entry(entry: TranscriptEntry, text: str) -> Json:
    cut = len(text) > LONGEST_ENTRY
    return {
        "kind": entry.kind,
        "label": label_of(entry).strip(),
        "text": format.clean(text[:LONGEST_ENTRY]),
        "cut": cut,
        "failed": entry.failed,
    }


def _size(view: RunView, agent: str, launch: int) -> int:
    with suppress(OSError):
        return os.stat(view.layout.output(agent, launch)).st_size  # noqa: PTH116 - beside its reader's
    return 0
