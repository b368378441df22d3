"""Bytes of a terminal become keys, also when they come in pieces."""

import pytest

from coral.cli.ui.live_keys import LONGEST_PASTE, Key, KeyDecoder


def names(*pieces: bytes) -> list[str]:
    decoder = KeyDecoder()
    return [key.name for piece in pieces for key in decoder.feed(piece)]


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x1b[A", "up"),
        (b"\x1bOB", "down"),  # in the mode for applications
        (b"\x1b[1;5C", "right"),  # with Ctrl
        (b"\x1b[5~", "page up"),
        (b"\x1b[6;2~", "page down"),
        (b"\x1b[H", "home"),
        (b"\x1b[4~", "end"),
        (b"\x1b[Z", "back tab"),
        (b"\t", "tab"),
        (b"\r", "enter"),
        (b"\n", "enter"),
        (b"\x7f", "backspace"),
        (b"\x15", "clear"),
        (b"\x1b[24~", "unknown"),
        (b"\x00", "unknown"),
        ("é".encode(), "é"),
    ],
)
def test_each_key_has_one_name(data: bytes, name: str) -> None:
    assert names(data) == [name]
    assert names(*(bytes([byte]) for byte in data)) == [name]


def test_only_a_character_writes_something() -> None:
    assert KeyDecoder().feed(b"j\x1b[B\xff") == [Key("j", "j"), Key("down"), Key("�", "�")]


def test_esc_is_told_from_the_beginning_of_an_arrow_by_what_follows() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b") == []
    assert decoder.is_waiting
    assert decoder.give_up() == [Key("escape")]
    assert (decoder.is_waiting, decoder.give_up()) == (False, [])
    assert decoder.feed(b"\x1b\x1b[A") == [Key("escape"), Key("up")]
    assert decoder.feed(b"\x1bj") == [Key("escape"), Key("j", "j")]


def test_a_paste_is_one_key_on_one_line() -> None:
    decoder = KeyDecoder()
    assert decoder.feed(b"\x1b[200~try\nfewer") == []
    assert decoder.give_up() == []
    assert decoder.feed(b" \x07restarts\r\n\x1b[201~p") == [Key("paste", "try fewer restarts"), Key("p", "p")]


def test_a_paste_without_end_is_not_kept_for_ever() -> None:
    (key,) = KeyDecoder().feed(b"\x1b[200~" + b"x" * LONGEST_PASTE)
    assert key.name == "paste"
