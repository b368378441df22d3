"""Chooses the next search: a family of moves by what has gained, and the attempt to start from by its score."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Self

from attempts.record import IMPROVED, Attempt, Direction, Verdict
from coral.native.search.bandit import counts_of, expected, gain, is_win, sample_family
from coral.native.search.families import FAMILIES, FIRST, LOCAL, SCATTER, parse_title
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
    families: Sequence[str] = situation.families
    if memory.redirected.family in families:
        return memory.redirected.family
    compared = compare_kinds(situation.known.all, situation.direction)
    first = _first_families(situation)[len(memory.trials) :] if not (memory.trials and compared) else ()
    for family in first:
        if family in families:
            return family
    kinds = sorted({FAMILIES[name].kind for name in families})
    kind = _choose_kind(kinds, situation, compared, random)
    if kind == LOCAL and _is_basin_exhausted(situation) and random.random() < ANEW:
        return SCATTER
    families = [name for name in families if FAMILIES[name].kind == kind]
    shared = situation.skill.counts if situation.skill is not None else {}
    own = counts_of(memory.trials, situation.direction, situation.known.seed)
    return sample_family(families or situation.families, own, shared, random)


Compared = dict[str, tuple[float, int]]


def _fruitless(situation: Situation) -> dict[str, float]:
    """Return the losses of each kind that no comparison shows: one for each own trial that led to no attempt, and if
    there are no constraints a part of one for each of the fleet's latest attempts that gained nothing. With constraints
    a local search that gains nothing is no reason for another kind."""
    losses = dict.fromkeys((family.kind for family in FAMILIES.values()), 0.0)
    latest = situation.known.all[-COMPARED:] if situation.constraints == 0 else ()
    failed = [attempt for attempt in latest if attempt.verdict not in (*IMPROVED, Verdict.VOID)]
    weights = [(trial.family, 1.0) for trial in situation.memory.trials if trial.number is None]
    weights += [(parse_title(attempt.title)[0], FRUITLESS) for attempt in failed]
    for family, weight in weights:
        if family in FAMILIES:
            losses[FAMILIES[family].kind] += weight
    return losses


def _is_basin_exhausted(situation: Situation) -> bool:
    """Return whether the last local search gained next to nothing, and none of its points can break a constraint: a
    random point would."""
    if situation.constraints != 0 or SCATTER not in situation.families:
        return False
    for trial in reversed(situation.memory.trials):
        if trial.score is not None and trial.family in FAMILIES and FAMILIES[trial.family].kind == LOCAL:
            gained, size = gain(trial.before, trial.score, situation.direction), abs(trial.before or 0.0)
            return gained <= EXHAUSTED * max(1.0, size) and gained <= LITTLE * size
    return False


def _choose_kind(kinds: Sequence[str], situation: Situation, compared: Compared, random: Random) -> str:
    """Choose a kind of families by how the kinds compare, for a rough problem is rough for all families that descend.
    If there are constraints, the kind that follows them is preferred until it loses. Fruitless tries are losses."""
    doubt, fruitless = CONSTRAINED if situation.constraints else 1.0, _fruitless(situation)

    def draw(kind: str) -> float:
        wins, tries = compared.get(kind, (0.0, 0))
        prior = 2.0 - doubt if kind == LOCAL else doubt
        return random.betavariate(prior + wins, 2.0 - prior + tries - wins + fruitless[kind])

    return max(kinds, key=draw, default="")


def compare_kinds(attempts: Sequence[Attempt], direction: Direction) -> Compared:
    """Return, for each kind, how many of its latest attempts can be compared with one of another kind, and the sum of
    the shares of these comparisons that they win. Two can be compared if they began at the same attempt, or if the one
    that reached more did not begin better. Of two that gained nothing, the one that stayed nearer to its start is not
    the better one."""
    scores = {attempt.number: attempt.score for attempt in attempts if attempt.score is not None}
    tried = list[_Tried]()
    for attempt in attempts[-COMPARED:]:
        family, start = parse_title(attempt.title)
        if family and attempt.score is not None:
            before, reached = scores.get(start), attempt.score
            if before is not None and direction.better(before, reached):
                reached = before
            tried.append(_Tried(FAMILIES[family].kind, start, before, reached))
    compared: dict[str, tuple[float, int]] = {}
    for tried_attempt in tried:
        rivals = [other for other in tried if tried_attempt.can_be_compared(other, direction)]
        won = [direction.better(tried_attempt.reached, rival.reached) for rival in rivals]
        if won:
            wins, tries = compared.get(tried_attempt.kind, (0.0, 0))
            compared[tried_attempt.kind] = wins + sum(won) / len(won), tries + 1
    return compared


@dataclass(frozen=True, slots=True)
class _Tried:
    """An attempt of a kind. `before`: the score of its start, None if that is not known; `reached`: the better of the
    two scores."""

    kind: str
    start: int
    before: float | None
    reached: float

    def can_be_compared(self, other: Self, direction: Direction) -> bool:
        gained = gain(other.reached, self.reached, direction)
        if self.kind == other.kind or not is_win(abs(gained), self.reached):
            return False
        known = self.before is not None and other.before is not None
        return self.start == other.start or (known and gain(other.before, self.before, direction) * gained <= 0.0)


def _first_families(situation: Situation) -> tuple[str, ...]:
    """Return the families that an agent begins with: descent; if there are no constraints, one family of each kind, in
    reverse order for every second agent, so that the fleet learns from the same start which kind gains. Once that is
    known, no agent tries the rest."""
    if situation.constraints != 0:
        return ("descent",)
    first = tuple(name for name in FIRST if name in situation.families)
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
    others = [name for name in situation.families if name != left] or situation.families
    claimed = {claim.gap for claim in claims_of(situation.notes) if claim.agent != situation.agent}

    def key(name: str) -> tuple[bool, int, float]:
        wins, losses = expected(name, counts)
        return name in claimed, recent[name], losses / (wins + losses)

    return min(others, key=key)


def choose_start(situation: Situation, random: Random) -> tuple[int | None, str]:
    """Return the attempt to start from (None: the files as they are), and why: as a redirect has decided, or one that
    another agent hands over, or the agent's own best; if it stagnates, sometimes the best of the fleet. No attempt
    whose files cannot be searched."""
    redirected, unusable = situation.memory.redirected.start, situation.memory.unusable
    own, best, seed = (
        attempt if attempt is not None and attempt.number not in unusable else None
        for attempt in (situation.own_best, situation.fleet_best, situation.known.best.get(""))
    )
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
