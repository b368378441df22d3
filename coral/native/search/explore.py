"""The tool `search`: makes a candidate from an attempt by a family of moves, with the public check or without one."""

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from attempts.fields import one_line
from attempts.record import Attempt, Direction, Verdict
from coral.native.calls import Search
from coral.native.editable_files import editable_texts
from coral.native.memory import AgentMemory, Candidate, Trial
from coral.native.options import Options
from coral.native.output import Output
from coral.native.run_view import AgentRunView
from coral.native.search.bandit import is_win
from coral.native.search.choose_family import is_every_second
from coral.native.search.families import EVOLUTION, FAMILIES, format_title, suitable_families
from coral.native.search.insight import findings
from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem, TimeUp
from coral.native.search.unchecked_search import next_step, propose
from coral.native.situation import CandidateFound
from coral.native.snapshots import Snapshots
from coral.native.tool_error import ToolError
from coral.public_check.check import CheckBroken, PublicCheck
from coral.search_space.declarations import read_declarations
from coral.search_space.space import MOST_VARIABLES, SearchSpace, Vector
from heartbeats.interval import OwnInterval
from workspace.errors import LockedError, SubmitError
from workspace.submit import checkout

if TYPE_CHECKING:  # numpy and cma take a second
    from coral.native.search.numeric.evolution import Evolution

LONGEST_TITLE = 160  # characters
OTHERS = 4  # agents whose best attempts a move may use
BESTS = 8  # new bests that are compared
FINDING_SECONDS = 2.0  # the longest time to learn which values matter
# OpenBLAS reads it once, when it is loaded. By itself it starts a thread for each core; in a fleet these hinder others:
# an evolution of 57 variables then takes six times the CPU. The check's process keeps its own setting.
THREADS = "OPENBLAS_NUM_THREADS"
SAVE_SECONDS = 1.0  # between two saves during an episode: of the memory, and of an evolution
# Lengths of episodes, in `options.seconds`. Short ones at first show which families gain. Later ones are longer,
# because each costs a launch.
LENGTHENED, LONGEST = 0.25, 2.0  # by how much each is longer than the one before; the longest
LONGEST_DESCENT = 2.4  # the longest of a local search in which a descent takes long


@dataclass(slots=True)
class Explorer:
    """Makes candidates from the files of one clone. `check`: the name of the public check, empty if there is none or it
    does not work; `environment`: the environment variables of the check's process, as they are before the first
    search changes this process's own."""

    snapshots: Snapshots[AgentMemory]
    output: Output
    run_view: AgentRunView
    options: Options
    editable: Sequence[str]
    check: str
    seed: int
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    _public_check: PublicCheck | None = None
    _constraints: int | None = None
    _noisy: bool | None = None  # whether two measurements by the check differ
    _copied: str = ""  # the program in the check's scratch copy, as `_program` names it
    _saved_at: float = 0.0  # when this episode saved the memory last
    _evolution_saved_at: float = 0.0

    def families(self) -> tuple[str, ...]:
        """Return the families that can change the files as they are; none if nothing can be varied."""
        with suppress(ToolError):
            return tuple(suitable_families(self._space(), others=bool(self._others()), check=bool(self.check)))
        return ()

    def findings(self) -> tuple[str, tuple[str, ...]]:
        """Return what the fleet's best changes in the seed, and what it and the new bests show of the problem if there
        is a check to ask; empty where something cannot be read or measured."""
        known = self.snapshots.memory.known
        best, change = known.leader(self.run_view.direction), ""
        if best is None or not best.agent:
            return "", ()
        with suppress(ToolError, CheckBroken, TimeUp):
            space = self._space()
            seed, at = self._point(space, known.best.get("")), self._point(space, best)
            change = space.describe_change(seed, at) if seed is not None and at is not None else ""
            if at is not None and self.check:
                bests = [attempt for attempt in known.recent if attempt.verdict == Verdict.NEW_BEST][-BESTS:]
                problem = self._problem(space)
                problem.deadline = time.monotonic() + FINDING_SECONDS
                return change, tuple(findings(problem, at, seed, self._points(space, bests)))
        return change, ()

    def constraints(self) -> int | None:
        """Return how many constraints the check reports for the files as they are; None if it gives no result."""
        if self._constraints is None and self.check:
            with suppress(CheckBroken, ToolError):  # a search will say so
                measured = self._the_check(self._space()).measure([{}])[0]
                self._constraints = None if measured.error else len(measured.slack)
        return self._constraints

    def _the_check(self, space: SearchSpace) -> PublicCheck:
        """Return the check that measures the clone's present program. Another program needs a check with a new copy of
        the clone: later, only the files with variables are written there."""
        program = self._program(space)
        if self._public_check is None or self._copied != program:
            self.close()
            self._public_check = None
            clone, scratch = self.run_view.clone, self.run_view.state / "scratch"
            self._public_check = PublicCheck(clone, self.check, scratch, self.options.check_seconds, self.environment)
            self._copied, self._constraints = program, None
        return self._public_check

    def _problem(self, space: SearchSpace) -> OptimizationProblem:
        check = self._the_check(space)
        check.warm_up()
        return OptimizationProblem(space, check.measure, self.run_view.direction is Direction.MAXIMIZE)

    def search(self, call: Search) -> CandidateFound:
        memory = self.snapshots.memory
        start = memory.known.find(call.start)
        space = self._space() if start is None else self._start_from(start, call.family)
        number, score = (start.number, start.score) if start is not None else (None, None)
        trial = Trial(title=format_title(call.family, number), family=call.family, start=number, before=score)
        self.output.beat("search", f"{trial.title}: {call.why}", 0.0)
        random = Random(f"{self.seed}/{memory.session}/{memory.episodes}")
        self.snapshots.memory = replace(memory, episodes=memory.episodes + 1)
        search = self._search_by_check if self.check else self._search_without_check
        try:
            return CandidateFound(self._candidate(space, *search(space, trial, random)))
        except CheckBroken as problem:
            self.check = ""
            raise ToolError(f"the public check is of no use, I go on without it: {problem}") from problem

    def close(self) -> None:
        if self._public_check is not None:
            self._public_check.close()

    def kill(self) -> None:
        """End the check without waiting for it, while this process is ending."""
        if self._public_check is not None:
            self._public_check.kill()

    def _search_by_check(self, space: SearchSpace, trial: Trial, random: Random) -> tuple[Vector, Trial]:
        from coral.native.search.episode import Episode, evolvable

        memory = self.snapshots.memory
        problem, program = self._problem(space), self._copied
        kept = self.run_view.state / f"evolution-{memory.known.epoch}"
        self._saved_at, evolution = 0.0, None
        os.environ.setdefault(THREADS, "1")
        if space.reals:  # numpy and scipy take half a second, and orders and choices do without them
            import_module("coral.native.search.numeric.descent")
        if trial.family == EVOLUTION:
            from coral.native.search.numeric.evolution import load_evolution

            evolution = load_evolution(kept, evolvable(space), len(space), program)
        problem.on_new_best = partial(self._save_best, space, trial)
        episode = Episode(
            problem,
            family=trial.family,
            others=self._points(space, self._others()),
            known=self._points(space, [memory.known.best.get("")]),
            seconds=self.options.seconds * min(LONGEST, 1.0 + LENGTHENED * (memory.episodes - 1)),
            longest=LONGEST_DESCENT * self.options.seconds,
            random=random,
            report=partial(self.output.beat, "search"),
            pause=OwnInterval(os.environ.get("CORAL_BEATS", "")).seconds,
            noisy=self._noisy,
            large_populations=is_every_second(self.run_view.agent),
            evolution=evolution,
            on_generation=partial(self._save_evolution, kept, program),
        )
        found = episode.run()
        self._noisy = episode.noisy
        if episode.evolution is not None:
            self._save_evolution(kept, program, episode.evolution, at_once=True)
        if found.point == space.start:
            self.snapshots.memory = self.snapshots.memory.discard(trial)
            raise ToolError(f"{trial.family} found nothing that differs from its start")
        before = trial.before if trial.before is not None else episode.start.measurement.score
        expected = found.measurement.score if not found.measurement.error else None
        return found.point, replace(trial, before=before, expected=expected)

    def _save_evolution(self, path: Path, program: str, evolution: "Evolution", *, at_once: bool = False) -> None:
        """Save an evolution, so that the next launch goes on with it: `at_once`, or if the last save is SAVE_SECONDS
        old."""
        from coral.native.search.numeric.evolution import save_evolution

        if at_once or time.monotonic() - self._evolution_saved_at >= SAVE_SECONDS:
            save_evolution(path, evolution, program)
            self._evolution_saved_at = time.monotonic()

    def _save_best(self, space: SearchSpace, trial: Trial, best: EvaluatedPoint) -> None:
        """Keep the best candidate of a running episode in memory, and now and then on disk, if it is feasible and
        better than the start by more than rounding."""
        score = best.measurement.score
        is_better = trial.before is None or is_win(trial.before, score, self.run_view.direction)
        if not best.measurement.feasible or not is_better:
            return
        self._candidate(space, best.point, replace(trial, expected=score))
        if time.monotonic() - self._saved_at > SAVE_SECONDS:
            self._saved_at = time.monotonic()
            self.snapshots.save()

    def _search_without_check(self, space: SearchSpace, trial: Trial, random: Random) -> tuple[Vector, Trial]:
        memory, direction = self.snapshots.memory, self.run_view.direction
        step, number = next_step(memory.trials, trial.family, trial.start, direction)
        failed = self._point(space, memory.known.find(number))
        point = propose(space, self._points(space, self._others()), trial.family, step, failed, random)
        return point, replace(trial, step=step)

    def _candidate(self, space: SearchSpace, point: Vector, trial: Trial) -> Candidate:
        """Make the candidate at a point, which memory keeps until it is submitted. Its title says what was changed, and
        no score: the check and the grade may have different scales."""
        change = space.describe_change(space.start, point)
        trial = replace(trial, title=one_line(f"{trial.title}: {change}", LONGEST_TITLE), change=change)
        candidate = Candidate(trial=trial, texts=space.texts(point))
        self.snapshots.memory = replace(self.snapshots.memory, unsubmitted=candidate)
        return candidate

    def _space(self) -> SearchSpace:
        declared = read_declarations(self.options.variables)
        space = SearchSpace(editable_texts(self.run_view.clone, self.editable), declared)
        if not (count := len(space)):
            raise ToolError("the editable files hold no number and no choice that I could vary")
        if count > MOST_VARIABLES:
            raise ToolError(f"the editable files hold {count} numbers, more than the {MOST_VARIABLES} I can search")
        return space

    def _program(self, space: SearchSpace) -> str:
        """Return a name for what the clone holds apart from the values of the variables: attempts with the same name
        differ in nothing else."""
        variable = {file.name for file in space.files}
        others = sorted(item for item in self.run_view.tracked().items() if item[0] not in variable)
        return sha256(repr((space.form, others)).encode(errors="surrogatepass")).hexdigest()

    def _others(self) -> list[Attempt]:
        return self.snapshots.memory.known.best_of_others(self.run_view.agent, self.run_view.direction)[:OTHERS]

    def _points(self, space: SearchSpace, attempts: Sequence[Attempt | None]) -> list[Vector]:
        return [point for attempt in attempts if (point := self._point(space, attempt)) is not None]

    def _point(self, space: SearchSpace, attempt: Attempt | None) -> Vector | None:
        """Return the point of an attempt; None if there is none, or its files have another form."""
        if attempt is None:
            return None
        return space.vector(self.run_view.files(attempt, [file.name for file in space.files]))

    def _start_from(self, attempt: Attempt, family: str) -> SearchSpace:
        """Put the clone on an attempt, so that what is made from it is its child, and return its space. If its files
        cannot be searched, the clone goes back, because it could not go on from there."""
        before = self.run_view.head()
        self._check_out(attempt.commit, attempt.number)
        try:
            space = self._space()
        except ToolError as problem:
            self.snapshots.memory = self.snapshots.memory.mark_unusable(attempt.number)
            self._check_out(before, attempt.number)
            raise ToolError(f"cannot start from #{attempt.number}: {problem}") from problem
        if not FAMILIES[family].suits(space, others=True, check=True):
            raise ToolError(f"{family} does not suit the files of #{attempt.number}")
        return space

    def _check_out(self, commit: str, number: int) -> None:
        try:
            checkout(self.run_view.clone, commit, self.run_view.agent)
        except SubmitError as problem:
            transient = isinstance(problem, LockedError)
            raise ToolError(f"cannot start from #{number}: {problem}", transient=transient) from problem
