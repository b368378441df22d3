"""Reads what agents and the operator write for the supervisor, submissions and requests, as if an enemy wrote them.

A file that is neither never stops the loop, and does not stay: a submission is removed and reported, a request is an
event that leads to a refusal. At most a few files of one sender are read at a time, and few are reported, so that a
flood delays nobody else.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from attempts.fields import one_line
from attempts.files import Listings, is_plain_file, parse_object, read_bytes
from attempts.store import MAX_NAMES, Malformed, Store
from coral.fleet import events as on
from coral.fleet.reasons import RunEnd, RunEndKind
from coral.fleet.run_state import FLEET
from coral.supervisor.alerts import AlertLimit
from workspace.layout import OPERATOR, Layout

REQUEST_BYTES = 64 * 1024
TEXT_LIMIT = 20_000
IDS_LIMIT = 100
WHAT_LENGTH = 200
AT_ONCE = 16  # files of one sender that are read at a time
NAME_BYTES = 100  # of the name of a request; its reply has a slightly longer one
OTHERS = "somebody else"  # all who are no agents of this run count as one sender


class Inbox:
    """The inboxes and request folders of a run's agents and operator."""

    def __init__(self, layout: Layout, agents: tuple[str, ...]) -> None:
        self._layout = layout
        self._store = Store(layout.attempts)
        self._agents = frozenset(agents)
        self._request_folders = {layout.requests_of(sender): sender for sender in (*agents, OPERATOR)}
        self._listings = Listings()
        self._failed: set[Path] = set()  # files that this machine could not read, and that were reported
        self._alerts = AlertLimit()
        self.more = False  # whether somebody has more files there than were read last

    def collect(
        self, clock: float, capacity: Mapping[str, int], touched: Collection[Path] | None = None
    ) -> Iterator[on.Event]:
        """What is there, submissions in the order of their ids: of each agent as many as `capacity` allows.

        `touched`: only these folders are read. A fleet has a thousand, and one at a time gets a new file.
        """
        counts: Counter[str] = Counter()
        for agent, _, path in self._store.inbox(AT_ONCE, touched):
            sender = agent if agent in self._agents else OTHERS
            if counts[sender] >= min(capacity.get(agent, AT_ONCE), AT_ONCE):
                continue
            counts[sender] += 1
            try:
                yield from self._submission(agent, path, clock)
            except OSError as error:
                yield from self._report_error(path, f"submission {one_line(path.name, 60)} of {agent}", error)
        for folder, sender in self._request_folders.items():
            if touched is not None and folder not in touched:
                continue
            # A link in the folder's place is not followed: requests are removed, and only those of this run.
            waiting = sorted(self._listings.entries(folder, _is_request, MAX_NAMES))[:AT_ONCE]
            counts[f"{sender}'s requests"] = len(waiting)
            for path in waiting:
                try:
                    yield from self._request(sender, path, clock)
                except OSError as error:
                    yield from self._report_error(path, f"request {one_line(path.name, 60)} of {sender}", error)
        self.more = any(count >= AT_ONCE for count in counts.values())
        yield from self._alerts.left(clock)

    def _report_error(self, path: Path, item: str, error: OSError) -> Iterator[on.Event]:
        """An error of this machine, not of the file: it is reported once. The file is read again at the next poll."""
        if path not in self._failed:
            self._failed.add(path)
            yield on.Broken(item=item, reason=str(error))

    def _submission(self, agent: str, path: Path, clock: float) -> Iterator[on.Event]:
        if agent not in self._agents:
            self._store.discard(path)
            item = f"a submission of {one_line(agent, 60)}"
            yield from self._alerts.about(OTHERS, item, "there is no such agent", clock)
            return
        try:
            yield on.Submitted(submission=self._store.read_submission(agent, path))
        except Malformed as error:
            self._store.discard(path)
            item = f"submission {one_line(path.name, 60)} of {agent}"
            yield from self._alerts.about(agent, item, str(error), clock)

    def _request(self, sender: str, path: Path, clock: float) -> Iterator[on.Event]:
        try:
            yield on.Requested(
                sender=sender, id=path.stem, request=_parse(parse_object(read_bytes(path, REQUEST_BYTES)))
            )
        except ValueError as error:
            reason = one_line(str(error), 300)
            yield on.RequestUnreadable(sender=sender, id=path.stem, reason=reason)
            yield from self._alerts.about(sender, f"request {one_line(path.name, 60)} of {sender}", reason, clock)


def _is_request(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".json") and is_plain_file(entry) and len(os.fsencode(entry.name)) <= NAME_BYTES


def _parse(data: Mapping[str, object]) -> on.Request:  # noqa: C901 - one arm per request
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
            return on.Stop(end=RunEnd(RunEndKind.REQUEST, detail=_text(data, "reason", "")))
        case "leave":
            return on.Leave(end=RunEnd(RunEndKind.REQUEST, detail=_text(data, "reason", "")))
        case "acknowledge":
            ids, numbers = data.get("owed", []), data.get("jobs", [])
            if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
                raise ValueError("owed: must be a list of ids")
            if not isinstance(numbers, list) or not all(type(number) is int for number in numbers):
                raise ValueError("jobs: must be a list of whole numbers")
            return on.Acknowledge(messages=tuple(ids[:IDS_LIMIT]), jobs=tuple(numbers[:IDS_LIMIT]))
        case "start_job":
            return on.RunJob(
                agent=_text(data, "agent"),
                argv=_command(data.get("command")),
                what=one_line(_text(data, "what", ""), WHAT_LENGTH),
                folder=_text(data, "folder", ""),
            )
        case "stop_job":
            number = data.get("number")
            if not isinstance(number, int) or isinstance(number, bool):
                raise ValueError("number: must be a whole number")
            return on.StopJob(number=number)
        case "alert":
            return on.RaiseAlert(text=_text(data, "text"))
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


def _command(value: object) -> tuple[str, ...]:
    """A command: its words. One that cannot be written as UTF-8 cannot be journalled, and a part of it would be another
    command."""
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ValueError("command: must be a list of words, and not an empty one")
    if any("\0" in word or not _is_text(word) for word in value):
        raise ValueError("command: must be text")
    return tuple(value)


def _is_text(word: str) -> bool:
    try:
        return bool(word.encode()) or not word
    except UnicodeError:
        return False


def _text(data: Mapping[str, object], name: str, default: str | None = None) -> str:
    value = data.get(name, default)
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be a text")
    # What cannot be written as UTF-8 cannot be journalled either.
    return value[:TEXT_LIMIT].encode("utf-8", "replace").decode()
