"""Chooses the next search: a family of moves by what has gained, and the attempt to start from by its score."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose, nan
from random import Random
from statistics import fmean
from typing import Self

from attempts.record import IMPROVED, Attempt, Direction, Verdict
from coral.native.search.bandit import ROUNDING, counts_of, expected, gain, sample_family
from coral.native.search.families import FIRST, KINDS, LOCAL, SCATTER, parse_title
from coral.native.search.hand_over import start_from
from coral.native.situation import Situation
from workspace.claims import claims_of

START_FROM_BEST = 0.5  # how often one that is behind, and gained nothing in its last attempt, starts from the best
COMPARED = 16  # attempts of the fleet, the latest: what has gained at first need not gain later
FRUITLESS = 0.3  # losses in a comparison, as which an attempt of a kind weighs that gained nothing
CONSTRAINED = 0.2  # expected wins in two comparisons of a kind that does not follow constraints
RECENT = 6  # trials that a redirect looks back at
EXHAUSTED = 1e-6  # relative: a local search that gained no more has exhausted its basin
LITTLE = 0.01  # of a small score: a larger gain is no sign of that
ANEW = 0.5  # how often the next local search then begins anywhere


def choose_family(situation: Situation, random: Random) -> str:
    """Choose a family: the one that a redirect has decided on, in the first attempts those of `_first_families`, then
    by Thompson sampling."""
    memory = situation.memory
    if memory.redirected.family in situation.families:
        return memory.redirected.family
    compared = compare_kinds(situation.known.all, situation.direction)
    first = _first_families(situation)[len(memory.trials) :]
    if first and not (memory.trials and compared):
        return first[0]
    kind = _choose_kind(situation, compared, random)
    if kind == LOCAL and _is_basin_exhausted(situation) and random.random() < ANEW:
        return SCATTER
    shared = situation.skill.counts if situation.skill is not None else {}
    own = counts_of(memory.trials, situation.direction, situation.known.seed)
    return sample_family([name for name in situation.families if KINDS[name] == kind], own, shared, random)


Compared = dict[str, tuple[float, int]]


def _fruitless(situation: Situation) -> list[tuple[str, float]]:
    """Return pairs of a family and a loss, for tries that `compare_kinds` does not see. Each own trial that led to no
    attempt is a loss of 1. Each of the fleet's latest attempts that gained nothing is a loss of FRUITLESS, unless there
    are constraints: then a local search that gains nothing is no reason for another kind."""
    latest = situation.known.all[-COMPARED:] if situation.constraints == 0 else []
    failed = [attempt for attempt in latest if attempt.verdict not in (*IMPROVED, Verdict.VOID)]
    losses = [(trial.family, 1.0) for trial in situation.memory.trials if trial.number is None]
    return losses + [(parse_title(attempt.title)[0], FRUITLESS) for attempt in failed]


def _is_basin_exhausted(situation: Situation) -> bool:
    """Return whether the last local search gained next to nothing, and none of its points can break a constraint: a
    random point would."""
    local = [trial for trial in situation.memory.trials if trial.score is not None and KINDS.get(trial.family) == LOCAL]
    if situation.constraints != 0 or SCATTER not in situation.families or not local:
        return False
    gained, size = gain(local[-1].before, local[-1].score, situation.direction), abs(local[-1].before or 0.0)
    return gained <= EXHAUSTED * max(1.0, size) and gained <= LITTLE * size


def _choose_kind(situation: Situation, compared: Compared, random: Random) -> str:
    """Choose a kind of families by how the kinds compare, for a rough problem is rough for all families that descend.
    If there are constraints, the kind that follows them is preferred until it loses. Fruitless tries are losses."""
    doubt, fruitless = CONSTRAINED if situation.constraints else 1.0, _fruitless(situation)

    def draw(kind: str) -> float:
        wins, tries = compared.get(kind, (0.0, 0))
        losses = tries - wins + sum(weight for family, weight in fruitless if KINDS.get(family) == kind)
        prior = 2.0 - doubt if kind == LOCAL else doubt
        return random.betavariate(prior + wins, 2.0 - prior + losses)

    return max(sorted({KINDS[name] for name in situation.families}), key=draw)


def compare_kinds(attempts: Sequence[Attempt], direction: Direction) -> Compared:
    """Return, for each kind, how many of its latest attempts can be compared with one of another kind, and the sum of
    the shares of these comparisons that they win. Two can be compared if they began at the same attempt, or if the one
    that reached more did not begin better. Of two that gained nothing, the one that stayed nearer to its start is not
    the better one."""
    worth = {attempt.number: gain(0.0, attempt.score, direction) for attempt in attempts if attempt.score is not None}
    tried = list[_Tried]()
    for attempt in attempts[-COMPARED:]:
        family, start = parse_title(attempt.title)
        if family and attempt.number in worth:
            before = worth.get(start, nan)
            tried.append(_Tried(KINDS[family], start, before, max(worth[attempt.number], before)))
    shares = defaultdict[str, list[float]](list)
    for tried_attempt in tried:
        won = [tried_attempt.reached > other.reached for other in tried if tried_attempt.can_be_compared(other)]
        if won:
            shares[tried_attempt.kind].append(fmean(won))
    return {kind: (sum(won), len(won)) for kind, won in shares.items()}


@dataclass(frozen=True, slots=True)
class _Tried:
    """An attempt, as it is compared with those of other kinds. `kind`: of its family; `start`: the number of the
    attempt that it was made from, and `before` its score, NaN if that is not known; `reached`: its own score, or
    `before` if that is better. Where the task minimises, both have the opposite sign: higher is better."""

    kind: str
    start: int
    before: float
    reached: float

    def can_be_compared(self, other: Self) -> bool:
        if self.kind == other.kind or isclose(self.reached, other.reached, rel_tol=ROUNDING, abs_tol=ROUNDING):
            return False
        began_better = self.before - other.before
        return self.start == other.start or began_better * (self.reached - other.reached) <= 0.0


def _first_families(situation: Situation) -> list[str]:
    """Return the families that an agent begins with: descent; if there are no constraints, one family of each kind, in
    reverse order for every second agent, so that the fleet learns from the same start which kind gains. Once that is
    known, no agent tries the rest."""
    names = FIRST if situation.constraints == 0 else ("descent",)
    first = [name for name in names if name in situation.families]
    return first[::-1] if is_every_second(situation.agent) else first


def is_every_second(agent: str) -> bool:
    """Return whether an agent's number is even: it tries families in reverse order, and its
    evolution has large populations after the first run."""
    digits = "".join(filter(str.isdigit, agent))
    return bool(digits) and int(digits) % 2 == 0


def choose_other_family(situation: Situation, left: str) -> str:
    """Choose another family than `left`, and if possible none that another agent claims: of those that were tried least
    lately, the likeliest to win."""
    trials = situation.memory.trials
    recent = Counter(trial.family for trial in trials[-RECENT:])
    counts = counts_of(trials, situation.direction, situation.known.seed)
    claimed = {claim.gap for claim in claims_of(situation.notes) if claim.agent != situation.agent}

    def key(name: str) -> tuple[bool, bool, int, float]:
        wins, losses = expected(name, counts)
        return name == left, name in claimed, recent[name], losses / (wins + losses)

    return min(situation.families, key=key)


def choose_start(situation: Situation, random: Random) -> tuple[int | None, str]:
    """Return the attempt to start from (None: the files as they are), and why: as a redirect has decided, or one that
    another agent hands over, or the agent's own best; if it stagnates, sometimes the best of the fleet. No attempt
    whose files cannot be searched."""
    redirected, unusable = situation.memory.redirected.start, situation.memory.unusable
    starts = (situation.own_best, situation.fleet_best, situation.known.best.get(""))
    own, best, seed = (start if start is not None and start.number not in unusable else None for start in starts)
    if redirected is not None and redirected not in unusable:
        return redirected, "redirected to the best of the fleet"
    if (handed := start_from(situation)) is not None:
        return handed
    stagnates = any(trial.verdict not in IMPROVED for trial in situation.memory.trials[-1:])
    if own and best and own != best and stagnates and random.random() < START_FROM_BEST:
        return best.number, "the best of the fleet: mine is behind, and my last attempt gained nothing"
    if own is not None:
        return own.number, "my best so far"
    return (seed.number, "the seed") if seed is not None else (None, "the files as they are")
