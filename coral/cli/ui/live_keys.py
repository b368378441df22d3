"""Decodes what a terminal sends into keys with names: characters, arrows and the like, and pasted text."""

import codecs
import re
from collections.abc import Iterator
from typing import NamedTuple

PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"
LONGEST_PASTE = 100_000  # characters that are waited for; more are dropped
_SEQUENCE = re.compile(r"\x1b\[([0-9;]*)([@-~])|\x1bO(.)", re.DOTALL)
_BEGUN = re.compile(r"\x1b(\[[0-9;]*|O)?")
_LETTERS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "Z": "back tab", "M": "enter"}
_NUMBERS = {"1": "home", "7": "home", "4": "end", "8": "end", "3": "delete", "5": "page up", "6": "page down"}
_CONTROLS = {"\r": "enter", "\n": "enter", "\t": "tab", "\x7f": "backspace", "\b": "backspace", "\x1b": "escape"}
_CONTROLS |= {"\x01": "home", "\x05": "end", "\x15": "clear", "\x17": "clear word"}  # Ctrl-A, E, U and W


class Key(NamedTuple):
    """A key. The name of a character is that character. `text`: what the key writes into a line; empty if it writes
    nothing."""

    name: str
    text: str = ""


class KeyDecoder:
    """Decodes bytes into keys. A sequence may arrive in pieces; an incomplete one is kept until the rest arrives."""

    def __init__(self) -> None:
        self._letters = codecs.getincrementaldecoder("utf-8")("replace")
        self._left = ""

    @property
    def is_waiting(self) -> bool:
        """Whether an incomplete sequence is kept. It may also be the key Esc, with which every sequence begins."""
        return bool(self._left)

    def feed(self, data: bytes) -> list[Key]:
        self._left += self._letters.decode(data)
        return list(self._whole())

    def give_up(self) -> list[Key]:
        """Return the key Esc for an incomplete sequence, because no more bytes came. An incomplete paste is kept: its
        end always comes."""
        if not self._left or self._left.startswith(PASTE):
            return []
        self._left = ""
        return [Key("escape")]

    def _whole(self) -> Iterator[Key]:
        while self._left:
            if self._left.startswith(PASTE):
                pasted, end, rest = self._left[len(PASTE) :].partition(PASTE_END)
                if not end and len(pasted) < LONGEST_PASTE:
                    return
                self._left = rest
                yield Key("paste", _printable(" ".join(pasted.split())))
            elif found := _SEQUENCE.match(self._left):
                self._left = self._left[found.end() :]
                number, letter, short = found.groups()
                name = _NUMBERS.get(number.partition(";")[0]) if letter == "~" else _LETTERS.get(letter or short)
                yield Key(name or "unknown")
            elif _BEGUN.fullmatch(self._left):
                return
            else:
                letter, self._left = self._left[0], self._left[1:]
                yield Key(_CONTROLS.get(letter, "unknown")) if not letter.isprintable() else Key(letter, letter)


def _printable(text: str) -> str:
    return "".join(letter for letter in text if letter.isprintable())
