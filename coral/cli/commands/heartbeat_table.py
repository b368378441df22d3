"""The heartbeats in force as a table: whose, when, how soon, what is asked. In a large fleet, agents share rows."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping

from coral.cli.run_data.lenient_json import LenientJson
from coral.cli.run_data.run_lookup import here
from coral.cli.run_data.run_view import RunView
from coral.cli.ui import format
from coral.cli.ui.console import console
from coral.cli.ui.table import table
from heartbeats.folder import FLEET, Folder
from workspace.layout import find_agent

EACH = 6  # agents that get rows of their own; more are grouped by what they have in common
COLUMNS = ("whose", "heartbeat", "when*", "next*", "delivery?", "set by?", "asks*?")

Rows = Mapping[str, list[LenientJson]]


def show(reading: RunView, args: argparse.Namespace) -> int:
    rows = _rows(reading, _owners(reading, args))
    if args.json:
        print(json.dumps({owner: [row.data for row in beats] for owner, beats in rows.items()}, indent=1))
        return 0
    if not any(rows.values()):
        print("no heartbeat is in force yet: the supervisor writes them down when the run begins")
        return 0
    lines = []
    for name, owner in _groups(rows):
        for place, beat in enumerate(rows[owner]):
            due = _due(reading, owner, beat) if name == owner else ""
            lines.append([name if place == 0 else " ", *_cells(beat, due)])
    out = console()
    out.print(table(COLUMNS, lines, out.width))
    return 0


def _owners(reading: RunView, args: argparse.Namespace) -> list[str]:
    if args.fleet:
        return [FLEET]
    inside = find_agent(here())
    agent = args.agent or (inside[1] if inside else None)
    return [FLEET, agent] if agent else [FLEET, *reading.agents()]


def _rows(reading: RunView, owners: list[str]) -> Rows:
    folder = Folder(reading.layout.heartbeats)
    return {owner: [LenientJson(row) for row in folder.read(owner)] for owner in owners}


def _groups(rows: Rows) -> list[tuple[str, str]]:
    """(name of the group, one owner in it)."""
    owners = [owner for owner in rows if rows[owner]]
    if len(owners) <= EACH + 1:
        return [(owner, owner) for owner in owners]
    alike: dict[str, list[str]] = {}
    for owner in owners:
        same = json.dumps([{**row.data, "next": ""} for row in rows[owner]], sort_keys=True, default=str)
        alike.setdefault(same, []).append(owner)
    return [(members[0] if len(members) == 1 else f"{len(members)} agents", members[0]) for members in alike.values()]


def _due(reading: RunView, owner: str, beat: LenientJson) -> str:
    """From the view that is a second old at most, else from the file."""
    for agent in reading.status.each("agents"):
        if agent.text("name") == owner or owner == FLEET:
            for coming in agent.each("next"):
                if coming.text("name") == beat.text("name"):
                    return coming.text("in", 40)
    return beat.text("next", 40)


def _cells(beat: LenientJson, due: str) -> list[str]:
    prompt = beat.text("prompt", 120)
    by = beat.text("by") + (" (protected)" if beat.data.get("protected") is True else "")
    return [
        beat.text("name"),
        beat.text("when"),
        due,
        beat.text("delivery"),
        by,
        format.line(prompt) or "its own prompt",
    ]
