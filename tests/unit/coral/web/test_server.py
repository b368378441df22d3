"""Where the dashboard is served, what its address says, and what is refused before anything is served."""

import socket

import pytest

from coral.errors import CoralError
from coral.web import server
from coral.web.access import PageAccess


def test_the_first_address_has_the_token() -> None:
    access = PageAccess(8000, "t" * 20)
    assert server.address("127.0.0.1", access) == f"http://127.0.0.1:8000/?token={'t' * 20}"
    assert server.address("::1", access).startswith("http://[::1]:8000/")
    assert socket.gethostname() in server.address("0.0.0.0", access)


def test_a_wider_bind_says_who_can_come_in() -> None:
    assert server.warning("127.0.0.1") == ""
    assert "whoever has the token" in server.warning("0.0.0.0")


def test_a_port_that_is_taken_is_refused_only_where_it_was_asked_for(monkeypatch) -> None:
    with server.bind("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CoralError, match="cannot serve at 127"):
            server.bind("127.0.0.1", port)
        monkeypatch.setattr(server, "PORT", port)
        with server.bind("127.0.0.1", None) as other:
            assert other.getsockname()[1] != port


def test_a_number_that_is_no_port_is_refused() -> None:
    with pytest.raises(CoralError, match="65536: a port is a number from 0 to 65535"):
        server.bind("127.0.0.1", 65_536)


def test_the_second_piece_of_an_answer_does_not_wait_for_the_first_to_be_acknowledged() -> None:
    with server.bind("127.0.0.1", 0) as bound:
        bound.listen()
        with socket.create_connection(bound.getsockname()), bound.accept()[0] as connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_fixed_token_must_not_be_short(monkeypatch) -> None:
    with server.bind("127.0.0.1", 0) as bound:
        monkeypatch.setenv(server.TOKEN, "short")
        with pytest.raises(CoralError, match="too easy to guess"):
            server.access_at(bound)
        monkeypatch.setenv(server.TOKEN, "x" * 16)
        assert server.access_at(bound).token == "x" * 16
