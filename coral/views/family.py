"""Chooses attempts of a run and lays them out as a tree of which attempt was built on which. Pure.

The child on the way to the best attempt stays in its parent's column, and the other children branch off to the right:
so a line of a thousand attempts does not move to the right.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from attempts.index.history import Child
from attempts.record import Direction, Verdict


@dataclass(frozen=True, slots=True)
class Leaf:
    """One line of the tree. `prefix`: the lines drawn before the attempt; `child`: the attempt; `under`: the shown
    attempt that it descends from; `between`: how many attempts that are not shown lie between the two; `hidden`: how
    many attempts were built directly on it and are not shown."""

    prefix: str
    child: Child
    under: int | None
    between: int
    hidden: int


class FamilyTree:
    """The attempts of an epoch by number, each with the attempt that it was built on."""

    def __init__(self, children: Iterable[Child], direction: Direction) -> None:
        self.members = {child.number: child for child in children}
        self._direction = direction
        self._built_on: dict[int, list[int]] = {}
        for child in self.members.values():
            if child.parent is not None:
                self._built_on.setdefault(child.parent, []).append(child.number)

    def line(self, number: int) -> list[int]:
        """Return the attempt, the attempt that it was built on, and so on up to the seed; empty for an unknown
        attempt."""
        found = [number] if number in self.members else []
        while found and (parent := self.members[found[-1]].parent) in self.members:
            assert parent is not None
            found.append(parent)
        return found

    def handed_on(self, number: int) -> list[Child]:
        """Return whose work an attempt was built on: itself and, going back along its line, the latest attempt of each
        stretch that one agent made; the last one is the seed."""
        line = [self.members[ancestor] for ancestor in self.line(number)]
        return [child for place, child in enumerate(line) if not place or child.agent != line[place - 1].agent]

    def descendants(self, number: int) -> list[int]:
        """Return all attempts that were built on this one, directly or indirectly, in the order of their numbers."""
        found, todo = [], [*self._built_on.get(number, ())]
        while todo:
            found.append(todo.pop())
            todo += self._built_on.get(found[-1], ())
        return sorted(found)

    def of_run(self, best: int | None, bests: Sequence[int], most: int | None) -> list[int]:
        """Choose at most `most` attempts for a tree of the whole run: first the line of the best and the agents' own
        bests, then all new bests, then the lines of the own bests. `bests`: the agents' own bests, best first. Without
        `most`, all attempts are chosen."""
        own = [self.line(number) for number in bests]
        line = self.line(best) if best is not None else []
        news = [number for number, child in self.members.items() if child.verdict is Verdict.NEW_BEST]
        wanted = [*line[:1], *line[-1:], *(number for number in line if self._is_new(number)), *bests, *line]
        wanted += [*news, *(number for line_of_one in own for number in line_of_one)]
        if most is None:
            wanted += self.members
        return _first(wanted, most, self.members)

    def around(self, number: int, most: int | None) -> list[int]:
        """Choose at most `most` attempts for a tree around one attempt: those that it was built on, and its descendants
        with the best scores."""
        line, later = self.line(number), self.descendants(number)
        margin = None if most is None else max(most - len(later), most // 2)
        return _first([*line[:1], *line[-1:], *line[1:margin], *self._ranked(later)], most, self.members)

    def layout(self, chosen: Sequence[int], best: int | None) -> Iterator[Leaf]:
        """Yield the chosen attempts as the lines of a tree, from top to bottom. `best`: the attempt whose line stays in
        the column of its parents."""
        shown = set(chosen)
        above = {number: self._above(number, shown) for number in sorted(shown)}
        below: dict[int | None, list[int]] = {}
        for number, (parent, _) in above.items():
            below.setdefault(parent, []).append(number)
        leads_on = set(self.line(best)) if best is not None else set[int]()
        counted = {number: sum(other not in shown for other in self._built_on.get(number, ())) for number in shown}
        highest = self._highest_below(below, shown)
        todo = [("", "", number) for number in reversed(below.get(None, []))]
        while todo:
            first, rest, number = todo.pop()
            yield Leaf(first, self.members[number], *above[number], counted[number])
            under = below.get(number, [])
            if not under:
                continue
            main = next((other for other in under if other in leads_on), None) or self._ranked(under, highest)[0]
            todo.append((rest, rest, main))
            sides = [other for other in under if other != main]
            todo += [(f"{rest}├─ ", f"{rest}│  ", other) for other in reversed(sides)]

    def _is_new(self, number: int) -> bool:
        return self.members[number].verdict is Verdict.NEW_BEST

    def _above(self, number: int, shown: set[int]) -> tuple[int | None, int]:
        """Return the closest shown ancestor of an attempt, or None, and the number of attempts between the two."""
        between, parent = 0, self.members[number].parent
        while parent is not None and parent in self.members and parent not in shown:
            between, parent = between + 1, self.members[parent].parent
        return (parent if parent in shown else None), between

    def _highest_below(self, below: Mapping[int | None, list[int]], shown: set[int]) -> dict[int, float | None]:
        """Return for each shown attempt the best score among itself and the attempts shown below it. Children have
        higher numbers than their parents."""
        found: dict[int, float | None] = {}
        for number in sorted(shown, reverse=True):
            held = [self.members[number].score, *(found[other] for other in below.get(number, ()))]
            values = [score for score in held if score is not None]
            found[number] = (max if self._direction is Direction.MAXIMIZE else min)(values, default=None)
        return found

    def _ranked(self, numbers: Iterable[int], by: Mapping[int, float | None] | None = None) -> list[int]:
        """Sort attempts by score, the best first and those without a score last. `by`: scores to use instead of their
        own."""

        def place(number: int) -> tuple[bool, float, int]:
            score = by[number] if by is not None else self.members[number].score
            sign = -1.0 if self._direction is Direction.MAXIMIZE else 1.0
            return score is None, sign * (score or 0.0), number

        return sorted(numbers, key=place)


def _first(wanted: Iterable[int], most: int | None, members: Mapping[int, Child]) -> list[int]:
    """Return the first `most` different numbers that are numbers of members."""
    found = [number for number in dict.fromkeys(wanted) if number in members]
    return found[:most]
