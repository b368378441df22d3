"""The data of the lineage page: a graph of which attempt was built on which, and where each agent's best came from."""

import threading
from collections import Counter
from collections.abc import Mapping
from heapq import nlargest
from pathlib import Path

from attempts.index import history
from attempts.record import Attempt, Kind
from coral.views import format
from coral.views.family import FamilyTree, Leaf
from coral.web.attempts_data import number_in
from coral.web.reading import RunView

MOST_NODES = 80  # of a graph
AROUND = 50  # of these nodes, around the chosen attempt
MOST_ROWS = 12  # of a graph; the agents with the fewest attempts in it share the last one
MOST_AGENTS = 30  # agents whose best is traced
MOST_STEPS = 6  # from agent to agent, for one best
KEPT = 8  # answers

Json = dict[str, object]


class LineageCache:
    """A cache of the answers that pages asked for last. An answer is made again after another attempt was published:
    with 100,000 attempts that takes a third of a second and 40 MB. Only one is made at a time, to save memory."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[tuple[Path, int | None], tuple[tuple[int, int], Json]] = {}

    def get(self, view: RunView, asked: Mapping[str, str]) -> Json:
        """Return the graph. The parameter `around` may name a chosen attempt; CoralError if there is none of that
        number."""
        number = number_in(asked, "around", 0) if asked.get("around") else None
        with self._lock:
            seen = view.index.folder.stat()  # opens the index first: making it changes the folder
            key, version = (view.layout.root, number), (seen.st_ino, seen.st_mtime_ns)
            known, made = self._held.pop(key, ((0, 0), Json()))
            self._held[key] = (version, made if known == version else lineage(view, number))
            if len(self._held) > KEPT:
                del self._held[next(iter(self._held))]
            return self._held[key][1]


def lineage(view: RunView, number: int | None) -> Json:
    """Return a graph of at most MOST_NODES attempts: those around attempt `number`, if given; the lines of the best and
    of the agents' own bests; then the latest attempts."""
    record = None if number is None else view.attempt(number, "show the lineage of")
    family = FamilyTree(view.index.ask(lambda rows: history.family(rows, view.only_agent)), view.direction)
    agents = view.own_bests
    chosen = _chosen(view, family, record, [number for _, number in agents[:MOST_AGENTS]])
    line = set(family.line(view.best)) if view.best is not None else set[int]()
    leaves = sorted(family.layout(chosen, view.best), key=lambda leaf: leaf.child.number)
    scores = format.scores([leaf.child.score for leaf in leaves])
    rows = _rows([leaf.child.agent for leaf in leaves])
    return {
        "around": number,
        "note": _note(view, record),
        "best": view.best,
        "rows": rows,
        "shared_row": len({leaf.child.agent for leaf in leaves} - set(rows)),
        "nodes": [_node(view, leaf, score, line) for leaf, score in zip(leaves, scores, strict=True)],
        "left_out": len(family.members) - len(leaves),
        "bests": _traced(family, agents[:MOST_AGENTS]),
        "more_agents": max(0, len(agents) - MOST_AGENTS),
    }


def _chosen(view: RunView, family: FamilyTree, record: Attempt | None, bests: list[int]) -> list[int]:
    around: list[int] = []
    if record is not None:
        number = record.of if record.kind is Kind.CONFIRM and record.of is not None else record.number
        around = family.around(number, AROUND)
    latest = nlargest(MOST_NODES, family.members)
    return list(dict.fromkeys([*around, *family.of_run(view.best, bests, MOST_NODES), *latest]))[:MOST_NODES]


def _note(view: RunView, record: Attempt | None) -> str:
    """Return why the chosen attempt is not in the graph; empty if it is."""
    if record is None or record.epoch == view.epoch:
        return ""
    return f"#{record.number} is of epoch {record.epoch}; the graph shows epoch {view.epoch}"


def _node(view: RunView, leaf: Leaf, score: str, line: set[int]) -> Json:
    child = leaf.child
    record = view.attempt_or_none(child.number)
    return {
        "number": child.number,
        "agent": child.agent,
        "verdict": child.verdict,
        "score": score,
        "title": format.line(record.title, 120) if record else "",
        "parent": leaf.under,
        "between": leaf.between,
        "hidden": leaf.hidden,
        "main": child.number in line,
    }


def _rows(authors: list[str]) -> list[str]:
    """Return the agents that have a row of their own in the graph, in the order of their first attempts in it."""
    found = list(dict.fromkeys(authors))
    if len(found) <= MOST_ROWS:
        return found
    counts = Counter(authors)
    most = set(sorted(found, key=lambda agent: (-counts[agent], -found.index(agent)))[: MOST_ROWS - 1])
    return [agent for agent in found if agent in most]


def _traced(family: FamilyTree, agents: list[tuple[str, int]]) -> list[Json]:
    """Return each agent's best, and the attempts of other agents that it came from."""
    lines = [(agent, number, family.handed_on(number)) for agent, number in agents]
    scores = format.scores([steps[0].score if steps else None for _, _, steps in lines])
    return [
        {
            "agent": agent,
            "number": number,
            "score": score,
            "from": [{"number": step.number, "agent": step.agent} for step in steps[1 : MOST_STEPS + 1]],
            "more": max(0, len(steps) - MOST_STEPS - 1),
        }
        for (agent, number, steps), score in zip(lines, scores, strict=True)
    ]
