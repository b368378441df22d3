"""Local search where the check is noisy, in the reals: it follows a surrogate, and no difference of two measurements.

The surrogate is a quadratic function, fitted by least squares to the measurements in a box around a point, the centre.
Its minimum in the box is the next centre, if it is lower by more than the fit is unsure of, and measuring it twice does
not contradict that. Else the box narrows where the fit is bad, and more points are measured where it is good. How far
repeated measurements of a centre differ tells one case from the other.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from coral.native.search.numeric.problem import EvaluatedPoint, OptimizationProblem
from coral.search_space.space import changed

FIRST_WIDTH, NARROWEST, WIDEST = 0.5, 1e-6, 100.0  # half-widths of the box, in scales
WIDER, NARROWER = 1.6, 0.7  # factors of the half-width
EDGE, SHORT = 0.9, 0.5  # steps, in half-widths: after longer ones the box widens, after shorter ones it narrows
REACH = 1.5  # half-widths around the centre: points within are fitted
PER_TERM = 1.5  # points for each term of a fit, at least
MOST_TERMS, MOST_FITTED = 300, 2000  # of a fit; the latest points
LEAST_SHARE, MOST_SHARE = 0.001, 0.1  # of the search's time, for the points of one step
MOST_BATCH = 600  # points of one step
FEWER, MORE = 0.67, 2.0  # times as many points after a step that gained, and after one that was unsure
FIRST_REPEATS, REPEATS = 4, 2  # measurements of the first centre, of each later one
DOUBTS = 3.0  # standard errors by which the next centre may differ from what the fit says
MISFIT = 2.0  # times the variance of repeated measurements: a fit with more is bad
MOST_UNSURE = 5  # steps in a row without a gain by good fits, after which the search ends
RIDGE = 1e-6  # for each point, so that a fit always exists

Floats = NDArray[np.float64]
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]  # of variables whose products are terms


@dataclass(frozen=True, slots=True)
class Fit:
    """A surrogate around the centre. `merit`: at the centre; `step`: to its minimum in the box, in half-widths,
    which is lower by `gain`; `doubt`: the standard error of that; `variance`: of the measurements around it."""

    merit: float
    step: Floats
    gain: float
    doubt: float
    variance: float


class SurrogateSearch:
    """One search. A position holds the values of the variables, each divided by its scale. `on_step` is called with
    each centre, so that the caller has them when the time is over."""

    def __init__(
        self,
        problem: OptimizationProblem,
        start: EvaluatedPoint,
        indices: Sequence[int],  # of the variables that it may change
        scales: Sequence[float],
        on_step: Callable[[EvaluatedPoint], None],
    ) -> None:
        self.problem, self.best, self.indices, self.on_step = problem, start, indices, on_step
        self.scales = np.array([scales[k] for k in indices])
        variables = [problem.space.variables[k] for k in indices]
        self.bounds = np.array([(variable.low, variable.high) for variable in variables]) / self.scales[:, None]
        self.centre: Floats = np.array([start.point[k] for k in indices]) / self.scales
        self.positions, self.merits = np.empty((0, len(indices))), np.empty(0)  # of all measured points
        self.width, self.unsure = FIRST_WIDTH, 0
        self.batch = self.least_batch = max(len(indices) + 2, problem.affordable(LEAST_SHARE))
        self.squares, self.freedom = 0.0, 0  # of repeated measurements, from their means
        self.centre_merit = np.inf  # the mean of what is measured there

    @np.errstate(over="ignore", invalid="ignore")  # of merits whose squares are no numbers, no fit is good
    def run(self, random: Random) -> EvaluatedPoint:
        """Return the last centre. Its score is the surrogate's, unless the check reports constraints."""
        generator = np.random.default_rng(random.getrandbits(32))
        self.centre_merit = self._repeat(FIRST_REPEATS)[1]
        while self.unsure < MOST_UNSURE and self.width > NARROWEST:
            count = int(min(MOST_BATCH, self.batch, self.problem.affordable(MOST_SHARE)))
            offsets = generator.uniform(-1.0, 1.0, (count, len(self.indices)))
            self._measure(np.clip(self.centre + self.width * offsets, *self.bounds.T))
            fit = self._fit()
            if fit is not None and fit.gain > fit.doubt:
                self._step(fit)
            elif fit is not None and fit.variance > MISFIT * self._noise():
                self.width *= NARROWER
            else:
                self.unsure, self.batch = self.unsure + 1, MORE * self.batch
                self._settle(self._repeat(REPEATS)[0], fit.merit if fit is not None else np.inf)
        return self.best

    def _noise(self) -> float:
        """Return the variance of repeated measurements."""
        return self.squares / max(1, self.freedom)

    def _step(self, fit: Fit) -> None:
        """Move the centre to the minimum of the fit. Undo this if the merit that is measured there is far above the
        merit that the fit predicts, or above the one measured at the former centre. The second happens where only a
        linear function can be fitted: in a wide box its value at the centre is far too high."""
        before, expected = self.centre, fit.merit - fit.gain
        self.centre = before + self.width * fit.step
        evaluated, mean = self._repeat(REPEATS)
        by_fit = max(fit.merit, expected + DOUBTS * np.sqrt(self._noise() / REPEATS + fit.doubt**2))
        if mean > min(by_fit, self.centre_merit + DOUBTS * np.sqrt(2.0 * self._noise() / REPEATS)):
            self.centre = before
            self.width *= NARROWER
            return
        self.centre_merit = mean
        self.unsure, self.batch = 0, max(self.least_batch, FEWER * self.batch)
        self._settle(evaluated, expected)
        length = float(np.abs(fit.step).max())
        self.width *= WIDER if length > EDGE else NARROWER if length < SHORT else 1.0
        self.width = min(self.width, WIDEST)

    def _settle(self, evaluated: EvaluatedPoint, merit: float) -> None:
        """Keep the centre as the best, with the merit that the surrogate says if that is its cost."""
        measurement = evaluated.measurement
        if not measurement.error and not measurement.slack and np.isfinite(merit):
            measurement = replace(measurement, score=-merit if self.problem.maximize else merit)
        self.best = EvaluatedPoint(evaluated.point, measurement)
        self.on_step(self.best)

    def _repeat(self, times: int) -> tuple[EvaluatedPoint, float]:
        """Measure the centre again; return it, and the mean of its merits."""
        evaluated = self._measure(np.tile(self.centre, (times, 1)))
        merits = self.merits[-times:]
        if np.isfinite(merits).all():
            self.squares += float(merits.var()) * times
            self.freedom += times - 1
        return evaluated[0], float(merits.mean())

    def _measure(self, positions: Floats) -> list[EvaluatedPoint]:
        origin, space = self.best.point, self.problem.space
        values = (positions * self.scales).tolist()
        points = [space.clip(changed(origin, zip(self.indices, row, strict=True))) for row in values]
        evaluated = self.problem.evaluate(*points)
        merits = [self.problem.merit(candidate.measurement) for candidate in evaluated]
        self.positions, self.merits = np.vstack((self.positions, positions)), np.append(self.merits, merits)
        return evaluated

    def _fit(self) -> Fit | None:
        """Fit the points near the centre, by as many terms as they are enough for; None if they are too few."""
        offsets = (self.positions - self.centre) / self.width
        near = (np.abs(offsets).max(axis=1) <= REACH) & np.isfinite(self.merits)
        offsets, merits = offsets[near][-MOST_FITTED:], self.merits[near][-MOST_FITTED:]
        count = len(self.indices)
        squared, nothing = np.arange(count), np.arange(0)
        most = min(MOST_TERMS, len(merits) / PER_TERM)
        choices: list[Pairs] = [np.triu_indices(count), (squared, squared), (nothing, nothing)]
        pairs = next((pairs for pairs in choices if 1 + count + len(pairs[0]) <= most), None)
        if pairs is None:
            return None
        terms = _terms(offsets, pairs)
        gram = terms.T @ terms + RIDGE * len(merits) * np.eye(terms.shape[1])
        weights = np.linalg.solve(gram, terms.T @ merits)
        variance = float(((merits - terms @ weights) ** 2).sum()) / (len(merits) - len(weights))
        step = self._least(weights, pairs, offsets[merits.argmin()])
        here, there = _terms(np.vstack((np.zeros(count), step)), pairs)
        doubt = np.sqrt(variance * ((here - there) @ np.linalg.solve(gram, here - there)))
        return Fit(float(here @ weights), step, float((here - there) @ weights), float(doubt), variance)

    def _least(self, weights: Floats, pairs: Pairs, lowest: Floats) -> Floats:
        """Return where the surrogate is least in the box, as scipy finds it from the centre and the lowest point."""
        count = len(lowest)
        slope, curvature = weights[1 : 1 + count], np.zeros((count, count))
        curvature[pairs] = weights[1 + count :]
        curvature += curvature.T
        box = np.clip((self.bounds - self.centre[:, None]) / self.width, (-1.0, 0.0), (0.0, 1.0))

        def surrogate(offset: Floats) -> tuple[float, Floats]:
            bend = curvature @ offset
            return float(slope @ offset + 0.5 * bend @ offset), slope + bend

        starts = (np.zeros(count), np.clip(lowest, *box.T))
        found = [minimize(surrogate, start, jac=True, bounds=box, method="L-BFGS-B") for start in starts]
        least: Floats = min(found, key=lambda result: float(result.fun)).x
        return least


def _terms(offsets: Floats, pairs: Pairs) -> Floats:
    return np.hstack((np.ones((len(offsets), 1)), offsets, offsets[:, pairs[0]] * offsets[:, pairs[1]]))
