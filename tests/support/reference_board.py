"""The ranking, the lineage and the curve computed from all records: what `attempts.index.query` must answer."""

from collections import Counter
from collections.abc import Callable, Iterable

from attempts.index.query import Ranked
from attempts.record import Attempt, Direction, Kind, Verdict


def leaderboard(
    attempts: Iterable[Attempt], direction: Direction, wanted: Callable[[Attempt], bool] = lambda _: True
) -> list[Ranked]:
    """Return the best candidates of the last epoch among the wanted attempts, best first; of equals the earlier one is
    ahead. What failed twice when it was measured again is left out, unless it is the best."""
    measured: dict[str, list[tuple[Attempt, float]]] = {}
    known = this_epoch(attempts)
    proofs = [attempt for attempt in known if attempt.verdict is Verdict.NEW_BEST]
    best = None if not proofs else proofs[-1].number if proofs[-1].of is None else proofs[-1].of
    proven = {attempt.tree for attempt in attempts if attempt.number == best}
    failed = [attempt for attempt in known if attempt.kind is Kind.CONFIRM and attempt.verdict is Verdict.FAILED]
    out = {tree for tree, count in Counter(attempt.tree for attempt in failed).items() if count > 1} - proven
    for attempt in known:
        if attempt.kind in (Kind.REAL, Kind.CONFIRM) and attempt.score is not None and attempt.agent:
            measured.setdefault(attempt.tree, []).append((attempt, attempt.score))
    candidates = [
        Ranked(
            number=next(attempt.number for attempt, _ in found if wanted(attempt)),
            scores=tuple(score for attempt, score in found if attempt is found[0][0] or attempt.of is not None),
        )
        for tree, found in measured.items()
        if any(wanted(attempt) for attempt, _ in found) and tree not in out
    ]
    return sorted(candidates, key=lambda candidate: candidate.median, reverse=direction is Direction.MAXIMIZE)


def this_epoch(attempts: Iterable[Attempt]) -> list[Attempt]:
    known = sorted(attempts, key=lambda attempt: attempt.order)
    last = max((attempt.epoch for attempt in known), default=1)
    return [attempt for attempt in known if attempt.epoch == last]


def lineage(attempts: Iterable[Attempt], number: int) -> list[int]:
    """Return an attempt and those it was built on, root first."""
    known = sorted(attempts, key=lambda attempt: attempt.order)
    current = next((attempt for attempt in known if attempt.number == number), None)
    line: list[Attempt] = []
    while current is not None and current.commit not in {attempt.commit for attempt in line}:
        line.append(current)
        parent = current.parent
        current = next((attempt for attempt in known if attempt.commit == parent), None)
    return [attempt.number for attempt in line[::-1]]


def measured(attempts: Iterable[Attempt], number: int) -> Ranked | None:
    """Return what an attempt scored each time it was measured."""
    known = sorted(attempts, key=lambda attempt: attempt.order)
    scores = [
        attempt.score
        for attempt in known
        if attempt.score is not None and attempt.kind is not Kind.TUNE and number in (attempt.number, attempt.of)
    ]
    return Ranked(number, tuple(scores)) if scores else None


def curve(attempts: Iterable[Attempt], history: Iterable[Attempt]) -> list[tuple[str, int, float]]:
    """Return the best over time: a point wherever one of the attempts proves a new one."""
    proofs = [attempt for attempt in this_epoch(attempts) if attempt.verdict is Verdict.NEW_BEST]
    found = [(proof, measured(history, proof.number if proof.of is None else proof.of)) for proof in proofs]
    return [(proof.published_at, proof.number, of.median) for proof, of in found if of is not None]
