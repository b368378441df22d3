"""What the local process of a launch and the bridge say to each other, over one connection after the other: numbered
orders for the node, and the messages that come back. Standard library only.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from coral.cluster import wire
from coral.cluster.mirror import Message

WINDOW = 8 << 20  # bytes that may be on their way to the node
TROUBLE_SECONDS = 60.0  # for which this machine may fail to read what is to be sent


class DisconnectedError(Exception):
    """The connection to the bridge has ended. No OSError, which tells of this machine's disk."""


class Link:
    """The orders on their way to the node: numbered, and sent again by the next connection until they were taken."""

    def __init__(self) -> None:
        self._connection: socket.socket | None = None
        self._waiting: deque[Iterator[Message]] = deque()
        self._sent: deque[tuple[int, Message]] = deque()
        self._next, self._bytes = 0, 0
        self._failed_at: float | None = None  # since when the next order cannot be read

    def connect(self, connection: socket.socket) -> None:
        """Send the orders that were not taken by this connection. This and all that sends may raise
        DisconnectedError."""
        self._connection = connection
        for number, order in self._sent:
            self._send(number, order)

    def disconnect(self) -> None:
        """Keep all orders for the next connection."""
        self._connection = None

    def post(self, orders: Iterable[Message]) -> None:
        self._waiting.append(iter(orders))

    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def post_first(self, order: Message) -> None:
        """Send an order before all that wait."""
        self._number(order)

    def taken(self, wanted: int) -> None:
        """Forget the orders before the one that the node wants next."""
        while self._sent and self._sent[0][0] < wanted:
            self._bytes -= _size(self._sent.popleft()[1])

    def received(self, seen: int) -> None:
        """Say how many events were handled, so that the node forgets them."""
        if self._connection is not None:
            send(self._connection, {"received": seen})

    def pump(self) -> None:
        """Send what waits, as long as not too much is on its way. What cannot be read now is tried again by the next
        call. OSError where that fails for long."""
        while self._waiting and self._bytes < WINDOW:
            try:
                order = next(self._waiting[0], None)
            except OSError:
                now = time.monotonic()
                self._failed_at = now if self._failed_at is None else self._failed_at
                if now > self._failed_at + TROUBLE_SECONDS:
                    raise
                return
            self._failed_at = None
            if order is None:
                self._waiting.popleft()
            else:
                self._number(order)

    def _number(self, order: Message) -> None:
        number, self._next = self._next, self._next + 1
        self._sent.append((number, order))
        self._bytes += _size(order)
        if self._connection is not None:
            self._send(number, order)

    def _send(self, number: int, order: Message) -> None:
        assert self._connection is not None
        send(self._connection, {"order": number, "message": order})


class MessageLines:
    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._held = connection, b""

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the messages that have come. Raises DisconnectedError."""
        try:
            piece = self._connection.recv(1 << 20)
        except OSError as error:
            raise DisconnectedError from error
        if not piece:
            raise DisconnectedError
        self._held += piece
        while b"\n" in self._held:
            line, _, self._held = self._held.partition(b"\n")
            yield wire.decoded(line)


def send(connection: socket.socket, message: Message) -> None:
    """Send a message to the bridge. Raises DisconnectedError."""
    try:
        connection.sendall(wire.encoded(message))
    except OSError as error:
        raise DisconnectedError from error


def _size(order: Message) -> int:
    return 200 + len(order.get("data") or b"")
