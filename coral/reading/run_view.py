"""Reads one run for the commands that change nothing, for the dashboard and for `import coral`.

Any file may be missing or damaged: then less is shown. An agent that works alone sees only its own attempts.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from attempts.index import history, query
from attempts.index.index import Index
from attempts.record import Attempt, Direction
from attempts.store import Missing, Store
from coral.errors import CoralError
from coral.reading import lenient_json, visibility
from coral.reading.lenient_json import LenientJson
from coral.views import format
from coral.views.holdout import Compared, HeldOut, compare
from workspace.layout import Layout, can_see_private, slug

MANY = 2000  # records; reading more takes long enough to say so


@dataclass(frozen=True)
class RunView:
    """A run as it is now. Each property is read when it is first used, and kept."""

    layout: Layout

    @cached_property
    def status(self) -> LenientJson:
        return lenient_json.read(self.layout.status)

    @cached_property
    def store(self) -> Store:
        return Store(self.layout.attempts)

    @cached_property
    def index(self) -> Index:
        """The index, which answers questions about all records: reading 100,000 files would take seconds."""
        index = Index(self.layout.attempts, _announce)
        index.refresh()
        return index

    def close(self) -> None:
        """Close the index if it was opened."""
        if "index" in vars(self):
            self.index.close()

    @cached_property
    def only_agent(self) -> str:
        """The agent in whose workspace this process runs, if that agent may see only its own attempts; else empty."""
        return visibility.alone_in(self.layout)

    @cached_property
    def direction(self) -> Direction:
        """The direction of the score, from status.json, which a sealed agent cannot read: from its environment, else
        from the frozen task; maximize if none of them says it."""
        for direction in (self.status.text("direction"), visibility.direction_in(self.layout)):
            if direction in set(Direction):
                return Direction(direction)
        from coral.config.load import load_frozen

        try:
            return load_frozen(self.layout.task_file).grader.direction
        except CoralError:
            return Direction.MAXIMIZE

    @cached_property
    def supervisor(self) -> int | None:
        """The pid of the run's supervisor; None if there is none, and for a sealed agent, which cannot see the lock."""
        from coral.supervisor.lock import holder

        return holder(self.layout.lock) if self.is_open else None

    @cached_property
    def is_use_lost(self) -> bool:
        """Whether the use of models is unknown because status.json cannot be read. False if no agent can use a model,
        and for a sealed agent, which may not see what others used."""
        if self.status or not self.is_open or not (agents := self.agents()):
            return False
        from coral.agent_setup.roster import may_use_models, members_of
        from coral.config.load import load_frozen

        try:
            config = load_frozen(self.layout.task_file)
        except CoralError:
            return True
        return not members_of(config).keys() >= set(agents) or may_use_models(config)

    @property
    def is_open(self) -> bool:
        """Whether this process can see the supervisor's private folder."""
        return can_see_private(self.layout)

    @property
    def is_made(self) -> bool:
        """Whether `coral start` has made the run to its end: before that there is nothing to resume. True for a sealed
        agent, which cannot see the journal."""
        return not self.is_open or self.layout.journal.exists() or self.store.witness(0) is not None

    @property
    def task(self) -> str:
        return self.status.text("task") or self.layout.root.parent.name

    @property
    def slug(self) -> str:
        """The task's name as files, folders and branches have it, wherever the run's folder was copied to."""
        return slug(self.task) or self.layout.root.parent.name

    @property
    def name(self) -> str:
        return self.layout.root.name

    @property
    def state(self) -> str:
        """running, stopping, stopped; `left`: its agents run without a supervisor; `dead`: its supervisor is gone."""
        state = self.status.text("state")
        if self.supervisor is not None or not self.is_open:
            return state if state == "stopping" else "running"
        return state if state in ("stopped", "left") else "dead"

    @cached_property
    def attempts(self) -> int:
        """How many attempts count: the real ones of all epochs with any verdict but void."""
        return self._counted("attempts", query.evals)

    @cached_property
    def failed(self) -> int:
        """How many of these have failed."""
        return self._counted("failed", query.failed)

    def _counted(self, key: str, count: Callable[[query.Rows, str], int]) -> int:
        """Return a figure of status.json; where that cannot be read, the same from the records that may be seen."""
        found = self.status.integer(key)
        return self.index.ask(lambda rows: count(rows, self.only_agent)) if found is None else found

    @cached_property
    def baseline(self) -> float | None:
        """The score of the seed, the median of its grades; None before it is graded."""
        score = self.status.number("baseline")
        if score is not None or self.seed is None:
            return score
        return self._measured(self.seed.number).number("median")

    @cached_property
    def seed(self) -> Attempt | None:
        """The record of the seed in the present epoch; None before the seed is graded."""
        number = self.status.integer("baseline_number")
        if number is None:
            number = self.index.ask(query.seed)
        return None if number is None else self.attempt_or_none(number)

    @property
    def epoch(self) -> int:
        return self.status.integer("epoch") or (self.seed.epoch if self.seed else 1)

    @cached_property
    def best(self) -> int | None:
        """The number of the best attempt, which is the seed's until an attempt has beaten it. It is computed from the
        records, because status.json may be out of date."""
        return self.index.ask(query.best)

    @cached_property
    def best_and_lead(self) -> tuple[LenientJson, LenientJson]:
        """The best and the lead as status.json has them. Where it cannot be read, as by a sealed agent, they are
        computed from the records that may be seen: the lead is the first of their ranking, which leaves out the seed.
        """
        if self.status:
            return self.status.inner("best"), self.status.inner("lead")
        wanted = query.Wanted(only_agent=self.only_agent)
        ranked = self.index.ask(lambda rows: query.ranked(rows, wanted, self.direction, 1))
        lead = self._measured(ranked[0].number if ranked else None)
        return lead if self.only_agent else self._measured(self.best), lead

    @cached_property
    def own_bests(self) -> list[tuple[str, int]]:
        """(agent, number of its own best) for each agent that has one, the best first; from status.json or the
        records, as `best_and_lead`."""
        if not self.status:
            return self.index.ask(lambda rows: history.own_bests(rows, self.direction, self.only_agent))
        sign = 1.0 if self.direction.better(0.0, 1.0) else -1.0
        agents = sorted(self.status.objects("agents"), key=lambda agent: sign * (agent.number("best") or 0.0))
        found = [(agent.text("name", 80), agent.integer("best_number")) for agent in agents]
        return [(name, number) for name, number in found if number is not None]

    def _measured(self, number: int | None) -> LenientJson:
        """Return what status.json has of a best or lead."""
        found = None if number is None else self.index.ask(lambda rows: query.measured(rows, number))
        record = None if found is None else self.attempt_or_none(found.number)
        if found is None or record is None:
            return LenientJson()
        measured = {"number": number, "median": found.median, "count": len(found.scores)}
        return LenientJson({**measured, "agent": record.agent, "title": record.title, "proven": number == self.best})

    @property
    def proven(self) -> int | None:
        """The number of the best attempt; None while that is the seed."""
        return None if self.best is None or (self.seed and self.best == self.seed.number) else self.best

    @cached_property
    def holdouts(self) -> list[Compared]:
        """The attempts of the present epoch that were graded on the hold-out, the seed first. Empty for an agent: only
        the operator may see these scores."""
        if self.seed is None:
            return []
        scores = self._holdout_scores
        found = {score.integer("number"): held for score in scores if (held := self._held_out(score)) is not None}
        seed = found.pop(self.seed.number, None)
        return compare([seed, *found.values()], self.direction) if seed else []

    @property
    def on_the_holdout(self) -> dict[int, float]:
        """The score on the hold-out of each attempt, of all epochs. Empty for an agent: only the operator may see these
        scores."""
        found = [(score.integer("number"), score.number("score")) for score in self._holdout_scores]
        return {number: value for number, value in found if number is not None and value is not None}

    @cached_property
    def _holdout_scores(self) -> list[LenientJson]:
        hidden = not self.is_open or visibility.is_agent()
        return [] if hidden else lenient_json.read(self.layout.holdout_scores).objects("scores")

    def _held_out(self, score: LenientJson) -> HeldOut | None:
        number = score.integer("number")
        record = None if number is None else self.attempt_or_none(number)
        if record is None or record.epoch != self.epoch:
            return None
        found = self.index.ask(lambda rows: query.measured(rows, record.number))
        if found is None:
            return None
        return HeldOut(record.number, found.median, score.number("score"), score.text("reason", 300))

    @property
    def lateness(self) -> float:
        """The age of status.json in seconds; 0 if nobody supervises the run, since nothing changes then."""
        return max(0.0, format.age(self.status.data.get("wall")) or 0.0) if self.supervisor is not None else 0.0

    @property
    def ungraded(self) -> list[int]:
        """The numbers of the attempts that are being graded, then of those that wait for a grading slot."""
        grading = self.status.inner("grading")
        return [*grading.integers("running"), *grading.integers("queued")]

    def agents(self) -> list[str]:
        """Return the names of the agents, from the folders of workspaces and of logs: an agent whose workspace was
        removed still has its log. Hidden folders are leftovers of damaged clones and are left out."""
        folders = (self.layout.agents, self.layout.logs_of_all)
        return sorted({name for of in folders for name in names_in(of) if (of / name).is_dir()}, key=_natural)

    def attempt(self, number: int, to: str = "show") -> Attempt:
        """Return the record of an attempt. CoralError if it does not exist or the reader may not see it. `to`: what the
        command wants to do, for the error message."""
        try:
            found = self.store.read(number)
        except Missing:
            last = self.index.ask(query.last)
            what, hint = "there is no such attempt", f"the last one is #{last}"
            if number in self.ungraded:
                what, hint = "it is not graded yet", f"`coral wait {number}` waits for it"
            raise CoralError(f"cannot {to} #{number}: {what}", hint) from None
        visibility.check_may_see(self.only_agent, found, to)
        return found

    def attempt_or_none(self, number: int | None) -> Attempt | None:
        found = self.store.find(number)
        return found if found is not None and visibility.may_see(self.only_agent, found) else None


def is_seed(measured: LenientJson) -> bool:
    """Return whether `measured`, the best or the lead in status.json, is the seed. The seed has no author."""
    return measured.integer("number") is not None and not measured.text("agent")


def names_in(folder: Path) -> list[str]:
    """Return the sorted names of the files and folders in a folder, without hidden ones; empty if it cannot be read."""
    try:
        return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
    except OSError:
        return []


def _announce(count: int) -> None:
    if count > MANY and sys.stderr.isatty():
        print(f"reading {count} records, this once ...", file=sys.stderr, flush=True)


def _natural(name: str) -> tuple[str, int, str]:
    """Return a key by which agent-2 is sorted before agent-10."""
    stem, _, tail = name.rpartition("-")
    return (stem, int(tail), "") if tail.isdecimal() else (name, 0, "")
