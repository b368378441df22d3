"""Groups failed attempts by the reason that the grader gave, to show when one reason fails most of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from attempts.fields import one_line

LENGTH = 120  # characters of a reason that tell its kind
KINDS = 50  # that are counted one by one
OTHERS = "other reasons"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?([eE][+-]?\d+)?")
_NONE = "no reason was given"


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """So many failures of one kind. `reason`: what the grader said of all of them; where only the figures differ, the
    same with `…` in their places."""

    count: int
    reason: str


def kind_of(reason: str) -> str:
    """The reason without its figures, by which equal failures are recognised."""
    return _NUMBER.sub("…", one_line(reason, LENGTH)) or _NONE


def shared_reason(before: str | None, reason: str) -> str:
    """The reason of a group, `before` (None: of an empty one), after one more failure of the same kind."""
    text = one_line(reason, LENGTH) or _NONE
    return text if before in (None, text) else kind_of(reason)


def counted(groups: Mapping[str, FailureGroup], reason: str) -> tuple[str, dict[str, FailureGroup]]:
    """The kind of one more failure, and the groups with it, by kind. Where they are too many the smallest joins the
    other reasons: one that becomes frequent keeps its place."""
    kind, kept = kind_of(reason), dict(groups)
    if kind not in kept and len(kept.keys() - {OTHERS}) >= KINDS:
        smallest = min(kept.keys() - {OTHERS}, key=lambda name: (kept[name].count, name))
        others = kept.pop(OTHERS, FailureGroup(0, OTHERS))
        kept[OTHERS] = FailureGroup(others.count + kept.pop(smallest).count, OTHERS)
    before = kept.get(kind, FailureGroup(0, ""))
    kept[kind] = FailureGroup(before.count + 1, shared_reason(before.reason or None, reason))
    return kind, kept
