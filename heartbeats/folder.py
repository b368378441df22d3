"""The folder `heartbeats/` of a run: a file for the fleet and one for each agent, with the heartbeats in force.

Only the supervisor writes the files, and only people read them. The journal decides: changing a file changes nothing.
"""

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.scalarstring import LiteralScalarString

from attempts.fields import BAD_DATA, printable
from attempts.files import Witness, read_bytes, witness, write_bytes
from heartbeats.entry import to_dict
from heartbeats.heartbeat import Heartbeat

FLEET = "fleet"
LARGEST = 2_000_000
MAX_PARTS = 2_000  # YAML events of a file: 20 heartbeats have 500
DEEPEST = 3
_HEAD = "# Heartbeats in force for {owner}. Written by the supervisor; to change one: coral heartbeat set\n"


class Folder:
    """The folder `heartbeats/` of one run."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, owner: str, heartbeats: Iterable[tuple[Heartbeat, str]]) -> None:
        """Write an owner's heartbeats in force. Each comes with the text that says when it is due next, or ""."""
        head = _HEAD.format(owner=owner if owner != FLEET else "the fleet")
        rows = [_row(heartbeat, due) for heartbeat, due in heartbeats]
        write_bytes(self._path(owner), "".join([head, *(rows or ["[]\n"])]).encode(), durable=False)

    def read(self, owner: str) -> list[dict[str, object]]:
        """Return the rows of an owner's file; none if there is no readable file.

        Somebody may have altered the file: only plain values under plain names are read, which is all that `write`
        makes. References within the file could expand without end.
        """
        try:
            text = read_bytes(self._path(owner), LARGEST).decode()
            _check_size(text)
            rows = YAML(typ="safe", pure=True).load(text)
        except (FileNotFoundError, YAMLError, *BAD_DATA, RecursionError, AssertionError):  # ruamel raises all of these
            return []
        return [_plain(row) for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []

    def witness(self, owner: str) -> Witness | None:
        """Return the witness of an owner's file; None where there is none."""
        return witness(self._path(owner))

    def _path(self, owner: str) -> Path:
        return self.root / f"{owner}.yaml"


def _check_size(text: str) -> None:
    """Raise ValueError for a file with more parts, or nested deeper, than `write` makes: reading it could take
    minutes."""
    depth = 0
    for count, event in enumerate(YAML(typ="safe", pure=True).parse(text)):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if count > MAX_PARTS or depth > DEEPEST:
            raise ValueError("it is none of ours")


def _plain(row: Mapping[object, object]) -> dict[str, object]:
    return {
        name: value
        for name, value in row.items()
        if isinstance(name, str)
        and (isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)))
    }


@lru_cache(maxsize=256)  # agents have many of the same, and to write one as YAML takes 0.7 ms
def _row(heartbeat: Heartbeat, due: str) -> str:
    row = {**to_dict(heartbeat), "when": heartbeat.when}
    prompt = printable(heartbeat.prompt)
    row["prompt"] = LiteralScalarString(prompt) if _reads_well(prompt) else prompt
    if due:
        row["next"] = due
    out, yaml = StringIO(), YAML()
    yaml.width = 10_000
    yaml.dump([row], out)
    return out.getvalue()


def _reads_well(prompt: str) -> bool:
    """Return whether a text can be written as a YAML block of lines and be read again unchanged; else it is quoted."""
    lines = prompt.split("\n")
    return len(lines) > 1 and lines[0][:1].isalnum() and all(line.isprintable() for line in lines)
