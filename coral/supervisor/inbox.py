"""Reads what agents and the operator write for the supervisor, submissions and requests; the files may be malicious.

A file that is neither never stops the loop, and does not stay: a malformed submission is removed and reported, a
malformed request is an event that leads to a refusal. At most a few files of one sender are read at a time, and few are
reported, so that a flood of files delays no other sender.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from attempts.fields import one_line
from attempts.files import Listings, is_plain_file, parse_object, read_bytes
from attempts.store import MAX_NAMES, Malformed, Store
from coral.fleet import events as on
from coral.supervisor.event_queue import AlertLimit
from coral.supervisor.request_format import read_request
from workspace.layout import OPERATOR, Layout

REQUEST_BYTES = 64 * 1024
AT_ONCE = 16  # files of one sender that are read at a time
NAME_BYTES = 100  # longest name of a request's file; the name of its reply is slightly longer
OTHERS = "somebody else"  # folders that belong to no agent of this run count as one sender


class Inbox:
    """The inboxes and request folders of a run's agents and operator."""

    def __init__(self, layout: Layout, agents: tuple[str, ...]) -> None:
        self._layout = layout
        self._store = Store(layout.attempts)
        self._agents = frozenset[str]()
        self._request_folders = {layout.requests_of(OPERATOR): OPERATOR}
        self.add_agents(agents)
        self._listings = Listings()
        self._failed: set[Path] = set()  # files that this machine could not read, and that were reported
        self._alerts = AlertLimit()
        self.more = False  # whether a sender may have more files than were read last

    def add_agents(self, agents: Collection[str]) -> None:
        """Read the files of these agents too, if they are new."""
        if not self._agents.issuperset(agents):
            self._agents = self._agents.union(agents)
            self._request_folders |= {self._layout.requests_of(agent): agent for agent in agents}

    def collect(
        self, clock: float, capacity: Mapping[str, int], touched: Collection[Path] | None = None
    ) -> Iterator[on.Event]:
        """Yield submissions in the order of their ids, then requests. `capacity`: how many submissions of each agent
        are read at most. `touched`: read only these folders, because a fleet may have a thousand; None: all."""
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
        yield from self._alerts.overdue_summaries(clock)

    def _report_error(self, path: Path, item: str, error: OSError) -> Iterator[on.Event]:
        """Report once that this machine could not read a file, which is no fault of the file. It is read again at the
        next poll."""
        if path not in self._failed:
            self._failed.add(path)
            yield on.Broken(item=item, reason=str(error))

    def _submission(self, agent: str, path: Path, clock: float) -> Iterator[on.Event]:
        if agent not in self._agents:
            path.unlink(missing_ok=True)
            item = f"a submission of {one_line(agent, 60)}"
            yield from self._alerts.report(OTHERS, item, "there is no such agent", clock)
            return
        try:
            yield on.Submitted(submission=self._store.read_submission(agent, path))
        except Malformed as error:
            path.unlink(missing_ok=True)
            item = f"submission {one_line(path.name, 60)} of {agent}"
            yield from self._alerts.report(agent, item, str(error), clock)

    def _request(self, sender: str, path: Path, clock: float) -> Iterator[on.Event]:
        try:
            yield on.Requested(
                sender=sender, id=path.stem, request=read_request(parse_object(read_bytes(path, REQUEST_BYTES)))
            )
        except ValueError as error:
            reason = one_line(str(error), 300)
            yield on.RequestUnreadable(sender=sender, id=path.stem, reason=reason)
            yield from self._alerts.report(sender, f"request {one_line(path.name, 60)} of {sender}", reason, clock)


def _is_request(entry: "os.DirEntry[str]") -> bool:
    return entry.name.endswith(".json") and is_plain_file(entry) and len(os.fsencode(entry.name)) <= NAME_BYTES
