"""How far grades of the same commit differ, and how much better a score must be before the difference is believed.

Noise is a standard deviation. The task gives it, or it is estimated from the attempts that were measured twice or more.
From few measurements it is known only roughly: then the bar is wider, as the t distribution says.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ERRORS = 3.0  # standard errors by which a difference must exceed zero
ENOUGH = 20  # degrees of freedom: once an estimate has these, the measurements of further attempts are not used
TINY = 1e-9  # share of a score below which two scores are equal
ROUNDING = 1e-12  # share of a score below which a standard deviation is an error of rounding
OUTLIER = 5 * 1.4826  # times the median distance from the median: beyond it, a measurement is left out ...
OUTLIERS_FROM = 8  # ... of at least so many


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSetting:
    """`grader.noise` of the task: a standard deviation in units of the score, or, if `relative`, as a share of the
    score. None: it is estimated."""

    deviation: float | None = 0.0
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Noise:
    """A standard deviation in units of the score. `freedom`: the degrees of freedom of the estimate; 0 if the noise is
    not known, infinity if the task gives it."""

    deviation: float = 0.0
    freedom: float = 0.0

    def bar(self, level: float, errors: float) -> float:
        """Return the difference of scores that must be exceeded to be believed; infinity if the noise is not known.
        `level`: the score to compare with; `errors`: the standard error of the difference, as a multiple of the
        deviation."""
        if not self.freedom:
            return math.inf
        return max(tiny(level), _quantile(self.freedom) * self.deviation * errors)


def tiny(level: float) -> float:
    """Return the largest difference from a score at `level` that is taken for a rounding error."""
    return TINY * abs(level)


def median(scores: Sequence[float]) -> float:
    ranked = sorted(scores)
    middle = len(ranked) // 2
    if len(ranked) % 2:
        return ranked[middle]
    return ranked[middle - 1] / 2 + ranked[middle] / 2


def mean(scores: Sequence[float]) -> float:
    """Return the mean, kept between the lowest and the highest score: rounding must not make equal scores differ from
    their mean."""
    return min(max(math.fsum(score / len(scores) for score in scores), min(scores)), max(scores))


def deviation(scores: Sequence[float]) -> float:
    """Return the standard deviation of two or more scores, as an estimate for all grades of their commit."""
    middle = mean(scores)
    return math.hypot(*(score - middle for score in scores)) / math.sqrt(len(scores) - 1)


def summary(scores: Sequence[float]) -> dict[str, float | int | None]:
    """Return the median, mean, standard deviation (None for one score) and count of an attempt's scores, as plain data
    for programs."""
    spread = deviation(scores) if len(scores) > 1 else None
    return {"median": median(scores), "mean": mean(scores), "deviation": spread, "count": len(scores)}


def noise_at(setting: NoiseSetting, level: float, groups: Iterable[Sequence[float]]) -> Noise:
    """Return the noise of scores near `level`. `groups`: the scores of each commit that was measured twice or more;
    those nearest to the level are used, because noise may grow with the score."""
    if setting.deviation is not None:
        return Noise(setting.deviation * (abs(level) if setting.relative else 1.0), math.inf)
    distances, freedom = list[float](), 0
    for scores in sorted(groups, key=lambda scores: abs(median(scores) - level)):
        kept = _without_outliers(scores)
        middle = mean(kept)
        distances += [score - middle for score in kept]
        freedom += len(kept) - 1
        if freedom >= ENOUGH:
            break
    if not freedom:
        return Noise()
    estimate = math.hypot(*distances) / math.sqrt(freedom)
    return Noise(0.0 if estimate < ROUNDING * abs(level) else estimate, freedom)


def _without_outliers(scores: Sequence[float]) -> Sequence[float]:
    if len(scores) < OUTLIERS_FROM:
        return scores
    middle = median(scores)
    far = OUTLIER * median([abs(score - middle) for score in scores])
    if not far:  # most are equal, as where a score counts something: the others are no outliers
        return scores
    return [score for score in scores if abs(score - middle) <= far]


def _quantile(freedom: float) -> float:
    """Return the multiple of an estimated standard deviation that corresponds to ERRORS deviations of the normal
    distribution, for an estimate with `freedom` degrees of freedom: the first terms of the Cornish-Fisher expansion of
    the t quantile."""
    if math.isinf(freedom):
        return ERRORS
    k = ERRORS
    first = (k**3 + k) / 4
    second = (5 * k**5 + 16 * k**3 + 3 * k) / 96
    third = (3 * k**7 + 19 * k**5 + 17 * k**3 - 15 * k) / 384
    return k + first / freedom + second / freedom**2 + third / freedom**3
