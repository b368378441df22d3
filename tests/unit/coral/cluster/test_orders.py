"""Orders on their way to a node, over connections that end."""

import socket
from collections.abc import Iterator

import pytest

from coral.cluster import wire
from coral.cluster.mirror import Message
from coral.cluster.orders import WINDOW, DisconnectedError, Link


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    made = [socket.socketpair() for _ in range(2)]
    yield made
    for pair in made:
        for end in pair:
            end.close()


def sent(there: socket.socket) -> list[tuple[int, object]]:
    there.setblocking(False)
    try:
        data = there.recv(1 << 20)
    except BlockingIOError:
        return []
    return [(line["order"], line["message"]) for line in map(wire.decoded, data.splitlines())]


def test_what_was_not_taken_is_sent_again_by_the_next_connection(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    link = Link()
    link.post([{"n": 1}, {"n": 2}])
    (here, there), (again, there_again) = pairs
    link.connect(here)
    link.pump()
    link.post_first({"signal": 2})
    assert sent(there) == [(0, {"n": 1}), (1, {"n": 2}), (2, {"signal": 2})]
    link.taken(1)
    link.connect(again)
    assert sent(there_again) == [(1, {"n": 2}), (2, {"signal": 2})]


def test_no_more_than_a_window_is_on_its_way_and_a_signal_passes(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    link, orders = Link(), iter([{"data": b"x" * (WINDOW - 1)}, {"n": 2}, {"n": 3}])
    link.post(orders)
    link.pump()  # there is no connection yet
    assert list(orders) == [{"n": 2}, {"n": 3}]
    link.post_first({"signal": 2})
    link.taken(1)
    here, there = pairs[0]
    link.connect(here)
    assert sent(there) == [(1, {"signal": 2})]


def test_an_order_without_a_connection_waits_for_the_next_one(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    link = Link()
    (here, _), (again, there_again) = pairs
    link.connect(here)
    here.close()
    with pytest.raises(DisconnectedError):
        link.post_first({"n": 1})
    link.disconnect()
    link.post_first({"signal": 2})
    link.connect(again)
    assert sent(there_again) == [(0, {"n": 1}), (1, {"signal": 2})]


class Orders(Iterator[Message]):
    """Two orders, the second of which cannot be read at first."""

    def __init__(self, faults: int) -> None:
        self._faults, self._ahead = faults, [{"n": 2}, {"n": 1}]

    def __next__(self) -> Message:
        if len(self._ahead) == 1 and self._faults:
            self._faults -= 1
            raise OSError("the disk fails")
        if not self._ahead:
            raise StopIteration
        return self._ahead.pop()


def test_what_cannot_be_read_for_a_while_is_sent_later_and_before_what_follows(
    pairs: list[tuple[socket.socket, socket.socket]], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, (here, there) = Link(), pairs[0]
    link.connect(here)
    link.post(Orders(faults=2))
    link.post([{"n": 3}])
    for _ in range(3):
        link.pump()
    assert sent(there) == [(0, {"n": 1}), (1, {"n": 2}), (2, {"n": 3})]
    monkeypatch.setattr("coral.cluster.orders.TROUBLE_SECONDS", -1.0)
    link.post(Orders(faults=1))
    with pytest.raises(OSError, match="the disk fails"):
        link.pump()
    link.pump()
    assert sent(there) == [(3, {"n": 1}), (4, {"n": 2})]
