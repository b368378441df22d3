"""Options as fields: each kind of field takes what it says, and a refusal says what would have been right."""

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from coral.native.option_fields import option, read_options


@dataclass(frozen=True)
class Some:
    text: str = option("", "what it is", most=3)
    choice: str = option("a", among=["a", "b"])
    count: int = option(1, least=1)
    share: float | None = option(None, least=0, most=1)
    big: float = option(1.0, least=0.05, most=1_000_000)
    switch: bool = option(False)
    words: tuple[str, ...] = option(())
    other: dict[str, int] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("text", "must be an object"),
        ({"txt": 1}, "there is no option 'txt'; there are big, choice, count, other, share, switch, text, words"),
        ({"text": 1}, "text must be a text of at most 3 characters; got 1"),
        ({"text": "four"}, "text must be a text of at most 3 characters; got 'four'"),
        ({"choice": "c"}, "choice must be a or b; got 'c'"),
        ({"choice": ["a"]}, "choice must be a or b; got ['a']"),
        ({"count": 0}, "count must be a whole number from 1; got 0"),
        ({"count": 1.0}, "count must be a whole number"),
        ({"count": True}, "count must be a whole number"),
        ({"share": 1.5}, "share must be a number from 0 to 1; got 1.5"),
        ({"share": float("nan")}, "share must be a number"),
        ({"big": None}, "big must be a number from 0.05 to 1000000; got None"),
        ({"switch": 1}, "switch must be true or false; got 1"),
        ({"words": "ab"}, "words must be a list of texts; got 'ab'"),
        ({"words": ["a", 1]}, "words must be a list of texts; got ['a', 1]"),
    ],
)
def test_what_is_wrong_is_said(given: object, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        read_options(Some, given)


def test_what_is_right_is_taken() -> None:
    given: dict[str, Any] = {"text": "abc", "choice": "b", "count": 2, "share": 1, "switch": True, "words": ["x"]}
    assert read_options(Some, given) == Some("abc", "b", 2, 1, 1.0, True, ("x",))
    assert read_options(Some, {"share": None, "big": 2}) == Some(big=2)
