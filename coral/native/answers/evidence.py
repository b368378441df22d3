"""What the attempts of all agents say about each family: read from the titles under which native agents hand in.

A title `rows from #12: ...` names the family and the start; the records say what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from attempts.record import Direction, Verdict
from coral.native.format import gain, is_worth
from coral.native.known_attempts import Entry
from coral.native.search.bandit import Credit
from coral.native.search.families import FAMILIES

TITLE = re.compile(r"(?P<family>[a-z]+) from #(?P<start>\d{1,9})\b")


@dataclass(slots=True)
class Evidence:
    """One family: who tried it, where it gained, by how much at most."""

    family: str
    tries: list[Entry] = field(default_factory=list)
    wins: list[tuple[Entry, float]] = field(default_factory=list)

    @property
    def best(self) -> tuple[Entry, float] | None:
        return max(self.wins, key=lambda win: win[1], default=None)

    def credit(self) -> Credit:
        return Credit(float(len(self.tries)), float(len(self.wins)), max((win for _, win in self.wins), default=0.0))


def by_family(entries: Iterable[Entry], direction: Direction) -> dict[str, Evidence]:
    """The evidence for each family that was tried; attempts whose title does not tell are left out."""
    known = {entry.number: entry for entry in entries}
    out: dict[str, Evidence] = {}
    for entry in known.values():
        found = TITLE.match(entry.title)
        if found is None or found["family"] not in FAMILIES or entry.verdict == Verdict.VOID:
            continue
        evidence = out.setdefault(found["family"], Evidence(found["family"]))
        evidence.tries.append(entry)
        start = known.get(int(found["start"]))
        before = start.score if start else None
        gained = max(0.0, gain(before, entry.score, direction))
        # An agent's best also improves when it starts from another's better attempt and ends where it began.
        if entry.verdict == Verdict.IMPROVED and (before is None or is_worth(gained, before)):
            evidence.wins.append((entry, gained))
    return dict(sorted(out.items(), key=lambda item: (-len(item[1].wins), -len(item[1].tries), item[0])))


def table(evidence: dict[str, Evidence]) -> str:
    """The same for people."""
    lines = ["| family | attempts | improved | largest gain | by |", "|---|---:|---:|---:|---|"]
    for name, item in evidence.items():
        best = item.best
        largest = f"{best[1]:.3g}" if best and best[1] else ""
        by = f"#{best[0].number} ({best[0].agent})" if best and best[1] else ""
        lines.append(f"| {name} | {len(item.tries)} | {len(item.wins)} | {largest} | {by} |")
    return "\n".join(lines)
