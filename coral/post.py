"""What agents and the operator put down for the supervisor: submissions and requests, read as if an enemy wrote them.

A file that is no submission or request is set aside and reported; it never stops the loop, and never stays to do so.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from attempts.fields import one_line
from attempts.files import entries, is_plain_file, parse_object, read_bytes, write_json
from attempts.store import Malformed, Store
from coral.fleet import events as on
from coral.fleet.state import FLEET
from workspace.layout import OPERATOR, Layout

REQUEST_BYTES = 64 * 1024
TEXT_LIMIT = 20_000
IDS_LIMIT = 100
NAME_BYTES = 100  # of a request; its answer has the same name and a little more


class Post:
    """The inboxes of a run. `agents` are the names whose folders are looked at."""

    def __init__(self, layout: Layout, agents: tuple[str, ...]) -> None:
        self._layout = layout
        self._store = Store(layout.attempts)
        self._senders = (*agents, OPERATOR)
        self._agents = frozenset(agents)
        self._troubled: set[Path] = set()

    def collect(self) -> Iterator[on.Event]:
        """Everything that waits, submissions in the order of their ids."""
        for agent, _, path in self._store.inbox():
            try:
                yield self._submission(agent, path)
            except OSError as error:
                yield from self._trouble(path, f"submission {one_line(path.name, 60)} of {agent}", error)
        for sender in self._senders:
            for path in sorted(entries(self._layout.requests_of(sender), _is_request)):
                try:
                    yield self._request(sender, path)
                except OSError as error:
                    yield from self._trouble(path, f"request {one_line(path.name, 60)} of {sender}", error)

    def answer(self, sender: str, id: str, data: Mapping[str, object]) -> None:
        """Answer a request, and take it away."""
        write_json(self._layout.replies_to(sender) / f"{id}.json", data, durable=False)
        (self._layout.requests_of(sender) / f"{id}.json").unlink(missing_ok=True)

    def _trouble(self, path: Path, item: str, error: OSError) -> Iterator[on.Event]:
        """This machine's trouble, not the file's: it stays, and is read again at the next poll. Told once."""
        if path not in self._troubled:
            self._troubled.add(path)
            yield on.Broken(item=item, reason=str(error))

    def _submission(self, agent: str, path: Path) -> on.Event:
        if agent not in self._agents:
            self._store.discard(path)
            return on.Broken(item=f"a submission of {one_line(agent, 60)}", reason="there is no such agent")
        try:
            return on.Submitted(submission=self._store.read_submission(agent, path))
        except Malformed as error:
            self._store.discard(path)
            return on.Broken(item=f"submission {one_line(path.name, 60)} of {agent}", reason=str(error))

    def _request(self, sender: str, path: Path) -> on.Event:
        try:
            return on.Requested(
                sender=sender, id=path.stem, request=_parse(parse_object(read_bytes(path, REQUEST_BYTES)))
            )
        except ValueError as error:
            reason = one_line(str(error), 300)
            self.answer(sender, path.stem, {"ok": False, "message": f"cannot read the request: {reason}", "hint": ""})
            return on.Broken(item=f"request {one_line(path.name, 60)} of {sender}", reason=reason)


def _is_request(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".json") and is_plain_file(entry) and len(os.fsencode(entry.name)) <= NAME_BYTES


def _parse(data: Mapping[str, object]) -> on.Request:
    match data.get("type"):
        case "set_heartbeat":
            return on.SetHeartbeat(owner=_text(data, "owner", FLEET), entry=_entry(data.get("heartbeat")))
        case "remove_heartbeat":
            return on.RemoveHeartbeat(owner=_text(data, "owner", FLEET), name=_text(data, "name"))
        case "reset_heartbeats":
            return on.ResetHeartbeats(owner=_text(data, "owner", FLEET))
        case "tell":
            return on.Tell(to=_text(data, "to", "*"), text=_text(data, "text"))
        case "stop":
            return on.Stop(reason=_text(data, "reason", ""))
        case "acknowledge":
            ids = data.get("owed")
            if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
                raise ValueError("owed: must be a list of ids")
            return on.Acknowledge(owed=tuple(ids[:IDS_LIMIT]))
        case "alert":
            return on.Alert(text=_text(data, "text"))
        case other:
            raise ValueError(f"type: there is no request {one_line(str(other), 60)!r}")


def _entry(value: object) -> dict[str, str | int | float | bool | None]:
    if not isinstance(value, dict):
        raise ValueError("heartbeat: must be an object")
    entry: dict[str, str | int | float | bool | None] = {}
    for key, held in value.items():
        if isinstance(held, str):
            entry[key] = _text(value, key)
        elif held is None or isinstance(held, bool) or (isinstance(held, int | float) and abs(held) < 1e15):
            entry[key] = held
        else:
            raise ValueError(f"heartbeat: {one_line(str(key), 40)}: must be a text or a finite number")
    return entry


def _text(data: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be a text")
    # What cannot be written as UTF-8 cannot be journalled either.
    return value[:TEXT_LIMIT].encode("utf-8", "replace").decode()
