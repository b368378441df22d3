"""The bridge of a run's agents: passes what their launches say between the local processes and the nodes.

Every launch has a host on its node, `coral.cluster.host`, which a new bridge finds again. This is the part that does
not depend on how hosts are made and called: a subclass does that.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from coral.cluster import wire
from coral.cluster.bridge import RefusedError, serve_connections

NEWS_SECONDS = 1.0
LAST_SECONDS = 5.0  # for which the last orders of a client that has left may take
UNCLAIMED_SECONDS = 15.0  # from the start of the bridge until launches that no client asks for are ended


class LostError(Exception):
    """The host of a launch is gone. The message says why."""


class LaunchClient:
    """The connection of a launch's local process. `asked`: its first message, see `coral.cluster.remote_launch`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._sending = connection, threading.Lock()
        self.asked: dict[str, Any] = {}
        self.orders = queue.SimpleQueue[dict[str, Any] | None]()  # for its host; None is the last
        self.received = 0  # events that it has handled
        self.host: Any = None
        self.node, self.waits = "", "it is submitted"  # why it has no node yet
        self.since = time.monotonic()  # when it was submitted, or began if it has a node
        self.has_left, self.is_answered = threading.Event(), threading.Event()  # the second: it has a host, or none

    def send(self, **message: Any) -> None:
        with self._sending, contextlib.suppress(OSError):  # it has ended, which its reader notices
            self._connection.sendall(wire.encoded(message))

    def wait_for(self, why: str) -> None:
        self.waits = why
        self.send(waits=why)

    def begin_on(self, node: str) -> None:
        self.node, self.since = node, time.monotonic()


class LaunchBridge(ABC):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._clients: dict[str, LaunchClient] = {}
        self._changed = threading.Lock()

    @abstractmethod
    def host(self, client: LaunchClient) -> Any:
        """Return the host of a launch: the one that there is, or a new one if it has not begun. It may not have a place
        yet. Raises LostError, RefusedError."""

    @abstractmethod
    def call(self, client: LaunchClient, method: str, *arguments: Any) -> Any:
        """Call a method of a client's host, and wait for the answer. Raises LostError."""

    @abstractmethod
    def end(self, launch: str) -> None:
        """End the host of a launch, if there is one, with all that it has started."""

    @abstractmethod
    def launches(self) -> list[str]:
        """Return all launches of the run that have a host, those of earlier bridges too."""

    @abstractmethod
    def described(self, places: list[dict[str, Any]], *, by_nodes: bool) -> dict[str, Any]:
        """Return what `coral cluster` and `coral doctor` show. `problem`: why the cluster cannot be used, or empty;
        `nodes`: one for each living node; `launches`: where each launch runs, or why it waits; `refused`: for each of
        `places`, why no node can run a launch with its `resources` and `labels`, or empty. `by_nodes`: each node also
        says which versions, which free disk, and which of the `programs` of `places` it has."""

    def serve(self) -> None:
        """Serve clients until nobody supervises the run and none is left."""
        threading.Thread(target=self._end_unclaimed, daemon=True).start()
        serve_connections(self._folder, self._serve, lambda: bool(self._clients))

    def _end_unclaimed(self) -> None:
        """End the launches of earlier bridges that no client has asked for in time."""
        time.sleep(UNCLAIMED_SECONDS)
        for launch in set(self.launches()) - self.present().keys():
            self.end(launch)

    def present(self) -> dict[str, LaunchClient]:
        with self._changed:
            return dict(self._clients)

    def _serve(self, connection: socket.socket) -> None:
        client = LaunchClient(connection)
        # Not in this thread: a host that takes no order for a while would keep it from seeing that the client has left.
        passing = threading.Thread(target=self._pass_on, args=(client,), daemon=True)
        passing.start()
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._take(client, wire.decoded(line))
        client.has_left.set()
        client.orders.put(None)
        passing.join(LAST_SECONDS if client.is_answered.is_set() else 0.0)
        connection.close()
        launch = client.asked.get("launch", "")
        if self._clients.get(launch) is client:  # it has not come back by another connection
            self.end(launch)  # its process has the end of the program, or was ended
            with self._changed:
                del self._clients[launch]

    def _take(self, client: LaunchClient, message: dict[str, Any]) -> None:
        if "describe" in message:
            client.send(**self.described(message["places"], by_nodes=message["describe"]))
        elif "launch" in message:
            client.asked, client.received = message, message["seen"]
            with self._changed:
                self._clients[message["launch"]] = client
            threading.Thread(target=self._tell_news, args=(client,), daemon=True).start()
        elif "received" in message:
            client.received = message["received"]
        else:
            client.orders.put(message)

    def _pass_on(self, client: LaunchClient) -> None:
        """Pass the orders of a client on to its host."""
        while (message := client.orders.get()) is not None:
            client.is_answered.wait()
            if client.host is None:
                return
            try:
                client.send(taken=self.call(client, "take", message["order"], [message["message"]]))
            except LostError as error:
                client.send(lost=str(error))
                return

    def _tell_news(self, client: LaunchClient) -> None:
        """Send a client the events of its launch."""
        wanted = client.received
        try:
            client.host = self.host(client)
            client.send(node=client.node)
            client.is_answered.set()
            while not client.has_left.is_set():
                news = self.call(client, "exchange", client.received, wanted, NEWS_SECONDS)
                if news["events"]:
                    client.send(at=news["at"], events=news["events"])
                    wanted = news["at"] + len(news["events"])
        except LostError as error:
            client.send(lost=str(error))
        except RefusedError as error:
            client.send(refused=str(error))
        client.is_answered.set()
        if client.has_left.is_set() and self.present().get(client.asked["launch"]) in (None, client):
            self.end(client.asked["launch"])  # it may have got its host only now
