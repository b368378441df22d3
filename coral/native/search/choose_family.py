"""Chooses the next search: a family of moves by what has gained, and the attempt to start from by its score."""

from collections import Counter
from collections.abc import Iterable, Sequence
from random import Random

from attempts.record import IMPROVED, Direction
from coral.native.memory import KnownAttempt
from coral.native.search.bandit import FamilyStats, gain, is_win, merge_stats, sample_family
from coral.native.search.families import FAMILIES, FIRST, LOCAL, parse_title
from coral.native.search.hand_over import start_from
from coral.native.situation import Observation, Situation
from workspace.claims import claims_of

START_FROM_SKILL = 0.5  # how often an agent that is behind starts from the best attempt that a skill names
START_FROM_BEST = 0.5  # how often one that is behind, and gained nothing in its last attempt, starts from the best
PATIENCE = 2  # attempts in a row with one family that gained nothing, before it rests for one
CONSTRAINED = 0.2  # expected wins in two comparisons of a kind that does not follow constraints
RECENT = 6  # trials that a redirect looks back at


def choose_family(situation: Situation, random: Random) -> str:
    """Choose a family: the one that a redirect has decided on, in the first attempts those of `_first_families`, then
    by Thompson sampling."""
    memory, observation = situation.memory, situation.observation
    redirection = memory.redirection
    families = [name for name in observation.families if not (redirection.episodes and name == redirection.avoid)]
    if redirection.episodes and redirection.family in families:
        return redirection.family
    if not (memory.trials and compare_kinds(situation.known.recent, observation.direction)):
        for family in _first_families(observation)[len(memory.trials) :]:
            if family in families:
                return family
    families = _of_one_kind(situation, families, random)
    failed = [trial.family for trial in memory.trials[-PATIENCE:] if trial.verdict not in IMPROVED]
    if len(failed) == PATIENCE and len(set(failed)) == 1 and len(families) > 1:
        families = [name for name in families if name != failed[0]]
    shared = merge_stats(skill.stats for skill in observation.skills)
    return sample_family(families or observation.families, memory.stats, shared, random)


def _of_one_kind(situation: Situation, families: Sequence[str], random: Random) -> list[str]:
    """Choose a kind of families by how the kinds compare, for a rough problem is rough for all families that descend,
    and return its families. If there are constraints, the kind that follows them is preferred until it loses."""
    compared = compare_kinds(situation.known.recent, situation.observation.direction)
    doubt = CONSTRAINED if situation.observation.constraints else 1.0

    def draw(kind: str) -> float:
        wins, tries = compared.get(kind, (0.0, 0))
        prior = 2.0 - doubt if kind == LOCAL else doubt
        return random.betavariate(prior + wins, 2.0 - prior + tries - wins)

    kinds = sorted({FAMILIES[name].kind for name in families})
    chosen = max(kinds, key=draw, default="")
    return [name for name in families if FAMILIES[name].kind == chosen]


def compare_kinds(attempts: Iterable[KnownAttempt], direction: Direction) -> dict[str, tuple[float, int]]:
    """Return, for each kind, how often it ended better than another kind from the same start, a tie being half a win,
    and how often it was compared. From different starts, a larger gain may only mean a worse start."""
    met: dict[int, list[tuple[str, float]]] = {}
    compared: dict[str, tuple[float, int]] = {}
    for attempt in attempts:
        family, start = parse_title(attempt.title)
        if not family or attempt.score is None:
            continue
        mine = FAMILIES[family].kind
        for kind, score in met.setdefault(start, []):
            if kind != mine:
                gained = gain(score, attempt.score, direction)
                won = 1.0 if is_win(gained, score) else 0.0 if is_win(-gained, score) else 0.5
                for who, share in ((mine, won), (kind, 1.0 - won)):
                    wins, tries = compared.get(who, (0.0, 0))
                    compared[who] = wins + share, tries + 1
        met[start].append((mine, attempt.score))
    return compared


def _first_families(observation: Observation) -> tuple[str, ...]:
    """Return the families that an agent begins with: descent; if there are no constraints, one family of each kind, in
    reverse order for every second agent, so that the fleet learns from the same start which kind gains. Once that is
    known, no agent tries the rest."""
    if observation.constraints != 0:
        return ("descent",)
    first = tuple(name for name in FIRST if name in observation.families)
    digits = "".join(filter(str.isdigit, observation.agent))
    return first[::-1] if digits and int(digits) % 2 == 0 else first


def choose_other_family(situation: Situation, left: str) -> str:
    """Choose another family than `left`, and if possible none that another agent claims: of those that were tried least
    lately, the likeliest to win."""
    recent = Counter(trial.family for trial in situation.memory.trials[-RECENT:])
    stats, families = situation.memory.stats, situation.observation.families
    others = [name for name in families if name != left] or families
    agent, claims = situation.observation.agent, claims_of(situation.observation.notes)
    claimed = {claim.gap for claim in claims if claim.agent != agent}
    free = [name for name in others if name not in claimed]
    return min(free or others, key=lambda name: (recent[name], -stats.get(name, FamilyStats()).win_rate(name)))


def choose_start(situation: Situation, random: Random) -> tuple[int | None, str]:
    """Return the attempt to start from (None: the files as they are), and why: as a redirect has decided, or one that
    another agent hands over, or the agent's own best; sometimes the best that a skill names, or that of the fleet."""
    redirection, own = situation.memory.redirection, situation.own_best
    if redirection.episodes and redirection.start is not None:
        return redirection.start, "redirected to the best of the fleet"
    if (handed := start_from(situation)) is not None:
        return handed
    best = {attempt.number: attempt for attempt in situation.known.best.values()}
    for skill in situation.observation.skills:
        named = best.get(skill.start) if skill.start is not None else None
        if (
            named is not None
            and _is_ahead(situation, named.score, own.score if own else None)
            and random.random() < START_FROM_SKILL
        ):
            return named.number, f"the skill names #{named.number}, which is ahead of mine"
    leader = situation.fleet_best
    gained = all(trial.verdict in IMPROVED for trial in situation.memory.trials[-1:])
    behind = own is not None and leader is not None and _is_ahead(situation, leader.score, own.score)
    if leader is not None and behind and not gained and random.random() < START_FROM_BEST:
        return leader.number, "the best of the fleet: mine is behind, and my last attempt gained nothing"
    if own is not None:
        return own.number, "my best so far"
    seed = situation.known.best.get("")
    return (seed.number, "the seed") if seed is not None else (None, "the files as they are")


def _is_ahead(situation: Situation, theirs: float | None, mine: float | None) -> bool:
    if theirs is None:
        return False
    return mine is None or situation.observation.direction.better(theirs, mine)
