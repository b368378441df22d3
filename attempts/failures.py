"""Groups failed attempts by the reason that the grader gave, to show when one reason fails most of them."""

import re
from collections.abc import Mapping

from attempts.fields import one_line

LENGTH = 120  # characters of a reason that tell its kind
KINDS = 20  # that are counted one by one
OTHERS = "other reasons"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?([eE][+-]?\d+)?")


def kind_of(reason: str) -> str:
    """The reason without its figures, by which equal failures are recognised."""
    return _NUMBER.sub("N", one_line(reason, LENGTH)) or "no reason was given"


def counted(counts: Mapping[str, int], reason: str) -> tuple[str, dict[str, int]]:
    """The kind of one more failure, and how many there are of each kind with it."""
    kind = kind_of(reason)
    if kind not in counts and len(counts) >= KINDS:
        kind = OTHERS
    return kind, {**counts, kind: counts.get(kind, 0) + 1}
