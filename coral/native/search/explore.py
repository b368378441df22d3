"""The tool `search`: from an attempt and a family to a candidate, by the public check or, without one, by judgement."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from coral.native.calls import Search
from coral.native.format import both, change, score
from coral.native.known_attempts import Entry
from coral.native.memory import Memory, Trial, Work
from coral.native.output import Output
from coral.native.run_view import Surroundings
from coral.native.search import unchecked_search as blind
from coral.native.search.check import Check, CheckBroken
from coral.native.search.episode import SAME, Episode, Plan
from coral.native.search.families import suitable
from coral.native.search.numeric.problem import Place, Problem
from coral.native.search.numeric.space import MOST_VARIABLES, Space, Vector, editable_texts
from coral.native.situation import Explored
from coral.native.snapshots import Keeper
from coral.native.tool_error import ToolError
from workspace.errors import LockedError, SubmitError
from workspace.submit import checkout

OTHERS = 4  # agents whose best is at hand for a move
SAVE_EVERY = 1.0  # seconds between two snapshots while an episode finds better candidates


@dataclass(slots=True)
class Explorer:
    """Searches in one clone. `check` is the spec of the public check, empty if there is none or it is of no use."""

    keeper: Keeper
    output: Output
    surroundings: Surroundings
    editable: Sequence[str]
    check: str
    scratch: Path
    seconds: float
    check_seconds: float
    maximize: bool
    seed: int
    _service: Check | None = None

    def families(self) -> tuple[str, ...]:
        """Those that can do something with the files as they are; none where nothing can be varied."""
        try:
            space = self._space(editable_texts(self.surroundings.clone, self.editable))
        except ToolError:
            return ()
        others = bool(self._others(self.keeper.memory))
        return tuple(suitable(space, others=others, check=bool(self.check)))

    def search(self, call: Search) -> Explored:
        memory = self.keeper.memory
        start = self._entry(memory, call.start)
        if start is not None:
            self._go_to(start)
        texts = editable_texts(self.surroundings.clone, self.editable)
        space = self._space(texts)
        others = self._points(space, self._others(memory))
        title = f"{call.family} from #{start.number}" if start is not None else f"{call.family} from the files"
        trial = Trial(title=title, family=call.family, start=start.number if start else None)
        trial = replace(trial, before=start.score if start else None)
        self.output.beat("search", f"{title}: {call.why}", 0.0)
        random = Random(f"{self.seed}/{memory.session}/{memory.episodes}")
        self.keeper.memory = replace(memory, episodes=memory.episodes + 1)
        if not self.check:
            return self._blindly(space, others, trial, random)
        try:
            return self._checked(space, others, trial, random)
        except CheckBroken as problem:
            self.check = ""
            raise ToolError(f"the public check is of no use, I go on without it: {problem}") from problem

    def close(self) -> None:
        if self._service is not None:
            self._service.close()

    def kill(self) -> None:
        """For the moment of our own end."""
        if self._service is not None:
            self._service.kill()

    def _checked(self, space: Space, others: list[Vector], trial: Trial, random: Random) -> Explored:
        memory = self.keeper.memory
        if self._service is None:
            self._service = Check(self.surroundings.clone, self.check, self.scratch, self.check_seconds)
        problem = Problem(space, self._service, self.maximize)
        seed = self._points(space, [entry for name, entry in memory.board.best.items() if not name])
        here = self._chain(memory, space) if memory.chain_family == trial.family else None
        plan = Plan(
            family=trial.family,
            start=space.start,
            here=here or space.start,
            others=others,
            seen=seed,
            seconds=self.seconds,
        )
        episode = Episode(problem, plan, random, lambda text, share: self.output.beat("search", text, share))
        saver = _Saver(self.keeper, problem, space, trial)
        problem.on_best = saver.better
        found = episode.run()
        expected = found.candidate.outcome.score
        before = trial.before if trial.before is not None else found.start.outcome.score
        trial = replace(
            trial,
            title=f"{trial.title}: {both(before, expected)}",
            before=before,
            expected=expected,
            moves=found.moves,
            evaluations=found.evaluations,
            seconds=round(found.seconds, 3),
            change=change(space, space.start, found.candidate.point),
        )
        if found.candidate.point == space.start:
            self.keeper.memory = self.keeper.memory.give_up(trial)
            raise ToolError(f"{trial.family} found nothing that differs from its start")
        texts = space.texts(found.candidate.point)
        chain = space.texts(found.chain.point)
        self.keeper.memory = replace(
            self.keeper.memory, work=Work(trial=trial, texts=texts), chain=chain, chain_family=trial.family
        )
        return Explored(trial, texts)

    def _blindly(self, space: Space, others: list[Vector], trial: Trial, random: Random) -> Explored:
        memory = self.keeper.memory
        size = memory.steps.get(trial.family, blind.FIRST)
        point = blind.propose(space, space.start, others, trial.family, size, self._failed(space, trial), random)
        trial = replace(
            trial,
            title=f"{trial.title}: step {size:.2g} away from {score(trial.before)}",
            moves=1,
            change=change(space, space.start, point),
        )
        texts = space.texts(point)
        self.keeper.memory = replace(self.keeper.memory, work=Work(trial=trial, texts=texts))
        return Explored(trial, texts)

    def _failed(self, space: Space, trial: Trial) -> Vector | None:
        """The last small step from this start, if it failed and its opposite has not been tried."""
        same = [t for t in self.keeper.memory.trials if t.family == trial.family and t.start == trial.start]
        if len(same) % 2 == 0 or same[-1].number is None:
            return None
        entry = self._entry(self.keeper.memory, same[-1].number)
        return self._point(space, entry) if entry is not None else None

    def _chain(self, memory: Memory, space: Space) -> Vector | None:
        return space.vector(memory.chain) if memory.chain else None

    def _space(self, texts: Mapping[str, str]) -> Space:
        space = Space(texts)
        if not len(space):
            raise ToolError("the editable files hold no number and no choice that I could vary")
        if len(space) > MOST_VARIABLES:
            raise ToolError(
                f"the editable files hold {len(space)} numbers, more than the {MOST_VARIABLES} I can search"
            )
        return space

    def _entry(self, memory: Memory, number: int | None) -> Entry | None:
        known = {entry.number: entry for entry in (*memory.board.recent, *memory.board.best.values())}
        return known.get(number) if number is not None else None

    def _others(self, memory: Memory) -> list[Entry]:
        direction = self.surroundings.direction
        return memory.board.others(self.surroundings.agent, direction)[:OTHERS]

    def _points(self, space: Space, entries: Sequence[Entry]) -> list[Vector]:
        return [point for entry in entries if (point := self._point(space, entry)) is not None]

    def _point(self, space: Space, entry: Entry) -> Vector | None:
        return space.vector(self.surroundings.files(entry, [page.name for page in space.pages]))

    def _go_to(self, entry: Entry) -> None:
        """Put the clone on an attempt, so that what is made from it is its child."""
        try:
            checkout(self.surroundings.clone, entry.commit, self.surroundings.agent)
        except SubmitError as problem:
            busy = isinstance(problem, LockedError)
            raise ToolError(f"cannot start from #{entry.number}: {problem}", again=busy) from problem


@dataclass(slots=True)
class _Saver:
    """Keeps the best candidate of a running episode in memory, and now and then on disk."""

    keeper: Keeper
    problem: Problem
    space: Space
    trial: Trial
    saved: float = 0.0

    def better(self, place: Place) -> None:
        if not place.outcome.feasible or not self._gains(place):
            return
        expected = place.outcome.score
        title = f"{self.trial.title}: {both(self.trial.before, expected)}"
        trial = replace(self.trial, title=title, expected=expected, evaluations=self.problem.evaluations)
        trial = replace(trial, change=change(self.space, self.space.start, place.point))
        self.keeper.memory = replace(self.keeper.memory, work=Work(trial=trial, texts=self.space.texts(place.point)))
        if time.monotonic() - self.saved > SAVE_EVERY:
            self.saved = time.monotonic()
            self.keeper.save()

    def _gains(self, place: Place) -> bool:
        before = self.trial.before
        if before is None:
            return True
        cost = -before if self.problem.maximize else before
        return cost - self.problem.cost(place.outcome) > SAME * max(1.0, abs(before))
