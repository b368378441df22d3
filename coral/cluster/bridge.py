"""The bridge of a run: the one process that speaks to its cluster. This is the part that Ray and Slurm share.

A bridge submits the grades of local clients (`coral.cluster.remote_grade`) and sends the events of the grades back to
them. One bridge works at a time: another waits for its lock. It ends when its standard input has ended and no client is
left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import socket
import struct
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attempts.files import write_bytes
from coral.cluster import wire

LINGER_SECONDS = 10.0  # for which the bridge waits for a client, once nobody supervises the run
UNCLAIMED_SECONDS = 10.0  # from the start of the bridge until grades that no client asks for are ended
LOOK_SECONDS = 0.2  # between two looks whether a client that waits is still there
LEASE_SECONDS = 120.0  # for which grades live without a bridge
LEASE_EVERY = 10.0  # seconds between two renewals of the lease
DELAY_SECONDS = 5.0  # until a grade that could not be submitted is submitted again
SEND_SECONDS = 30  # for which a client may take nothing of what it is sent, before it is dropped


def wait_for_lock(folder: Path) -> bool:
    """Wait for the lock, which this process then holds until it ends. Return False if standard input gets a line or its
    end before that: no other bridge is needed then."""
    threading.excepthook = _end
    lock = os.open(folder / wire.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if select.select([0], [], [], 0.2)[0]:
            return False


def serve_connections(folder: Path, serve: Callable[[socket.socket], None], has_clients: Callable[[], bool]) -> None:
    """Serve each connection in a thread of its own, until nobody supervises the run, which the end of standard input
    shows, and there has been no client for LINGER_SECONDS. A line there means that none will come."""
    allow_many_files()
    listening = wire.listen(folder)
    supervised, lingers, last_client = True, LINGER_SECONDS, time.monotonic()
    while True:
        watched: list[Any] = [listening, *([0] if supervised else [])]
        ready, _, _ = select.select(watched, [], [], 0.1)
        if 0 in ready:
            supervised = False
            lingers = 0.0 if os.read(0, 10) else LINGER_SECONDS
        if listening in ready:
            threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
        if has_clients():
            last_client = time.monotonic()
        elif not supervised and time.monotonic() >= last_client + lingers:
            return


def allow_many_files() -> None:
    """Let this process have as many open files as it may: it has a connection for each grade or launch."""
    with contextlib.suppress(OSError, ValueError):  # macOS knows limits that it does not take
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _end(failed: threading.ExceptHookArgs) -> None:
    """End this process when one of its threads fails, with the reason in its log: another bridge goes on."""
    sys.excepthook(failed.exc_type, failed.exc_value or failed.exc_type(), failed.exc_traceback)
    sys.stderr.flush()
    os._exit(5)


def report_trouble(folder: Path, text: str) -> None:
    """Report why the cluster cannot be used now, or with an empty text that it can. The supervisor begins no grade
    meanwhile, and clients wait."""
    with contextlib.suppress(OSError):  # the disk is full: it is reported again at the next look
        if not text:
            (folder / wire.TROUBLE).unlink(missing_ok=True)
        elif text != wire.trouble(folder):
            write_bytes(folder / wire.TROUBLE, f"{text}\n".encode(), durable=False)


def report_capacity(folder: Path, grades: int) -> None:
    """Report for how many grades the cluster has room when nothing else runs there: no more are to be in flight."""
    if grades != wire.capacity(folder):
        with contextlib.suppress(OSError):  # the disk is full: it is tried again a second later
            write_bytes(folder / wire.CAPACITY, f"{grades}\n".encode(), durable=False)


def report_excluded(folder: Path, nodes: dict[str, str]) -> None:
    """Write which nodes are excluded into `folder`, where the supervisor reads it. `nodes`: the reasons by address."""
    if nodes != wire.excluded(folder):
        with contextlib.suppress(OSError):  # the disk is full: it is tried again a second later
            write_bytes(folder / wire.EXCLUDED, json.dumps(nodes).encode(), durable=False)


def fail(folder: Path, text: str) -> None:
    """End this process because the cluster cannot be used. The keeper starts another one after a pause."""
    report_trouble(folder, text)
    os._exit(3)


class RefusedError(Exception):
    """The cluster never runs such a grade. The message says why."""


class DelayedError(Exception):
    """The cluster does not take the grade now. The message says why."""


class Client:
    """The connection of a grade's local process."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self._sending = connection, threading.Lock()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        self.tried: Try | None = None  # the last try that it has asked for

    def send(self, **message: Any) -> None:
        """Send a message, unless the client has ended, which `_serve` notices. One that takes nothing for SEND_SECONDS
        is dropped: the same thread tells the others."""
        with self._sending, contextlib.suppress(OSError):
            try:
                self.connection.sendall(wire.encoded(message))
            except BlockingIOError:
                self.connection.shutdown(socket.SHUT_RDWR)


class Try:
    """One try of a grade, for a client. `seen`: how many events of the try the client has received; `again`: whether it
    has submitted the try before, perhaps to an earlier bridge. The next try is another object, so that a thread that
    still holds this one does not mistake its state for that of the next."""

    def __init__(self, client: Client, message: dict[str, Any]) -> None:
        """`message`: that by which the client submits it, see `coral.cluster.remote_grade`."""
        self.key, self.client, self.seen = str(message["submit"]), client, int(message["seen"])
        self.again = bool(message["again"])
        self.attempt, self.resources = int(message["order"]["attempt"]), message["resources"]
        self.since = time.monotonic()  # when it was submitted, or began if it has a place
        self.place: dict[str, Any] = {}  # the event by which it began on a node
        self.is_submitted = self.is_over = False
        self.avoids: frozenset[str] = frozenset()  # the nodes on which it does not begin
        self._waits = ("", False)  # what the client knows of that, see `wait_for`
        if message["began"]:
            self._begin(message["began"])

    def tell(self, at: int, events: list[Any]) -> None:
        """Send the client those of the events that it has not had. `at`: the number of the first one."""
        new = events[max(self.seen - at, 0) :]
        self.seen += len(new)
        for event in new:
            if "started" in event:
                self._begin(event)
            self.is_over = self.is_over or bool(event.keys() & {"lost", "refused", "ended"})
        if new:
            self.client.send(of=self.key, events=new)

    def wait_for(self, why: str, *, behind: bool) -> None:
        """Tell the client of a try that was submitted what it waits for. `behind`: whether other grades of the run are
        on nodes."""
        if self.is_submitted and (why, behind) != self._waits:
            self._waits = why, behind
            self.client.send(waits=why, behind=behind)

    def _begin(self, event: dict[str, Any]) -> None:
        self.place, self.since = event, time.monotonic() - event.get("ago", 0.0)

    @property
    def node(self) -> str:
        """The node on which it began; empty before that."""
        return str(self.place.get("node", ""))


class Bridge(ABC):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tries: dict[str, Try] = {}
        self._changed, self._arrived = threading.Lock(), threading.Event()  # `_arrived`: a try was added
        self._began = 0.0  # when it began to listen

    def described(self, resources: dict[str, Any] | None, *, by_nodes: bool) -> dict[str, Any]:
        """Return what `coral cluster` shows: `problem`, `nodes`, `grades`, `runs`; and as `refused`, why the cluster
        can never run a grade that needs these resources. `by_nodes`: whether each node is asked what it has, which
        takes seconds."""
        found: dict[str, Any] = {"problem": wire.trouble(self._folder), "nodes": [], "runs": [], "refused": ""}
        reasons: dict[str, str] = {}
        if not found["problem"]:
            reasons = self.look(found, by_nodes=by_nodes)
            found["problem"] = found["problem"] or wire.trouble(self._folder)
            if resources is not None and not found["problem"]:
                found["refused"] = self.refusal(resources)
        now = time.monotonic()
        grades = [
            {
                "attempt": tried.attempt,
                "node": tried.place.get("started", ""),
                "seconds": round(now - tried.since, 1),
                "waits": "" if tried.place else reasons.get(tried.key, "it is submitted"),
            }
            for tried in self.present()
        ]
        return {**found, "grades": sorted(grades, key=lambda grade: (not grade["node"], grade["attempt"]))}

    @abstractmethod
    def look(self, found: dict[str, Any], *, by_nodes: bool) -> dict[str, str]:
        """Put what there is into `found`: its `nodes`, and other `runs` on the cluster. Return, by key, why grades
        wait."""

    @abstractmethod
    def refusal(self, resources: dict[str, Any]) -> str:
        """Return why no node of the cluster can run a grade that needs these resources; empty if one can."""

    @abstractmethod
    def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        """Submit a grade, unless it is submitted already. Raise RefusedError if the cluster never runs it, DelayedError
        or OSError if it is to be submitted again later."""

    @abstractmethod
    def cancel(self, key: str) -> None:
        """End a grade, if it has not ended, and forget it."""

    @abstractmethod
    def keys(self) -> list[str]:
        """Return the keys of all grades that were submitted and not ended by `cancel`, those of earlier bridges too."""

    def cancel_unclaimed(self) -> None:
        """End the grades of earlier bridges that no client has asked for, once UNCLAIMED_SECONDS have passed."""
        if self._began and time.monotonic() > self._began + UNCLAIMED_SECONDS:
            self._began = 0.0
            for key in set(self.keys()) - {tried.key for tried in self.present()}:
                self.cancel(key)

    def serve(self) -> None:
        """Serve clients until nobody supervises the run and none is left."""
        self._began = time.monotonic()
        serve_connections(self._folder, lambda connection: self._serve(Client(connection)), lambda: bool(self._tries))

    def present(self) -> list[Try]:
        with self._changed:
            return list(self._tries.values())

    def wait_for_tries(self) -> list[Try]:
        """Block until there is a try; return all."""
        while not (present := self.present()):
            self._arrived.wait()
            self._arrived.clear()
        return present

    def _serve(self, client: Client) -> None:
        connection = client.connection
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._take(client, wire.decoded(line))
        connection.close()
        if client.tried is not None:
            self._forget(client.tried)  # the client has its result, or was ended

    def _take(self, client: Client, message: dict[str, Any]) -> None:
        if "describe" in message:
            client.send(**self.described(message["resources"], by_nodes=message["describe"]))
            return
        key, resources = message["submit"], message["resources"]
        try:
            if client.tried is not None:
                self._forget(client.tried)
            tried = client.tried = Try(client, message)
            with self._changed:
                self._tries[key] = tried
            self._arrived.set()
            while problem := self._delay(key, message["order"], resources):
                if not self.is_waited_for(key, problem, DELAY_SECONDS):
                    return
            tried.is_submitted = True
            client.send(waits="")
        except RefusedError as error:
            client.send(refused=str(error))

    def _delay(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> str:
        """Submit a grade. Return why it was not taken now; empty if it was."""
        try:
            self.submit(key, order, resources)
        except (DelayedError, OSError) as error:
            return f"it cannot be submitted: {error}"
        return ""

    def is_waited_for(self, key: str, why: str, seconds: float) -> bool:
        """Tell the client of a try what the try waits for before it can be submitted, and wait. Return whether the
        client is still there."""
        until = time.monotonic() + seconds
        if (tried := self._tries.get(key)) is not None:
            tried.client.send(waits=why)
        while time.monotonic() < until:
            if self._has_left(key):
                return False
            time.sleep(LOOK_SECONDS)
        return True

    def _has_left(self, key: str) -> bool:
        tried = self._tries.get(key)
        if tried is None:
            return True
        try:  # no `select`: it takes no descriptor above 1023, and a bridge may have more clients
            return tried.client.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def was_submitted(self, key: str) -> bool:
        """Return whether the client has submitted this try before, to this bridge or to an earlier one."""
        return (tried := self._tries.get(key)) is not None and tried.again

    def has_sent_events(self, key: str) -> bool:
        """Return whether the client of this try has received events of it. Then it was submitted before, and must not
        be submitted a second time under the same key."""
        return (tried := self._tries.get(key)) is not None and tried.seen > 0

    def _forget(self, tried: Try) -> None:
        """End a try, unless its client has come back by another connection meanwhile."""
        with self._changed:
            if self._tries.get(tried.key) is not tried:
                return
            del self._tries[tried.key]
        self.cancel(tried.key)
