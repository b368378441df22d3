"""Groups failed attempts by the reason that the grader gave, to show when one reason fails most of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from attempts.fields import one_line

LENGTH = 120  # characters of a reason, from its beginning, that decide its kind
KINDS = 50  # groups that are kept, besides OTHERS
OTHERS = "other reasons"
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(\.\d+)?([eE][+-]?\d+)?")
_NONE = "no reason was given"


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """The failures of one kind. `reason`: the reason that all of them have; where they differ in figures only, each
    figure is replaced by `…`."""

    count: int
    reason: str


def kind_of(reason: str) -> str:
    """Return the reason with `…` for each figure. Two failures are of one kind if these are equal."""
    return _NUMBER.sub("…", one_line(reason, LENGTH)) or _NONE


def shared_reason(before: str | None, reason: str) -> str:
    """Return the reason to show for a group after one more failure of its kind: `before` if `reason` is the same, else
    without the figures. `before`: the reason so far; None for a new group."""
    text = one_line(reason, LENGTH) or _NONE
    return text if before in (None, text) else kind_of(reason)


def counted(groups: Mapping[str, FailureGroup], reason: str) -> tuple[str, dict[str, FailureGroup]]:
    """Count one more failure; returns its kind, and the groups by kind. At most KINDS groups are kept: for a new kind
    the smallest one is merged into OTHERS, so that a frequent one is kept."""
    kind, kept = kind_of(reason), dict(groups)
    if kind not in kept and len(kept.keys() - {OTHERS}) >= KINDS:
        smallest = min(kept.keys() - {OTHERS}, key=lambda name: (kept[name].count, name))
        others = kept.pop(OTHERS, FailureGroup(0, OTHERS))
        kept[OTHERS] = FailureGroup(others.count + kept.pop(smallest).count, OTHERS)
    before = kept.get(kind, FailureGroup(0, ""))
    kept[kind] = FailureGroup(before.count + 1, shared_reason(before.reason or None, reason))
    return kind, kept
