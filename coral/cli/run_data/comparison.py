"""Compares several runs: what came of each, what it used, and in which settings they differ."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from attempts.index.query import evals
from coral.errors import CoralError
from coral.fleet.reasons import BudgetKey
from coral.reading.curve import read_curve
from coral.reading.lenient_json import LenientJson
from coral.reading.run_view import RunView
from coral.reading.settings import config_of, settings
from coral.reading.timeline import read_figures
from coral.views import format
from coral.views.curve import Curve

MOST = 10  # runs: more cannot be told apart on a screen


@dataclass(frozen=True)
class RunOutcome:
    """What came of one run. `settings`: all of them, by dotted key; None if the run's task cannot be read."""

    view: RunView
    curve: Curve
    settings: dict[str, str] | None

    @property
    def gain(self) -> float | None:
        """By how much the proven best is better than the seed, in units of the score; below 0 where later grades of it
        are worse, 0 while the seed is the best."""
        best, seed = self.curve.best, self.view.baseline
        if best is None or seed is None:
            return None
        return 0.0 if self.view.proven is None else self.curve.gain(best, seed)

    @property
    def attempts(self) -> int:
        """The number of real attempts with any verdict but void, of all epochs."""
        return self.view.attempts

    @cached_property
    def attempts_of_epoch(self) -> int:
        """The number of these in the present epoch, in which the gain was made."""
        return self.view.index.ask(partial(evals, only_agent=self.view.only_agent, of_all_epochs=False))

    @property
    def gain_per_attempt(self) -> float | None:
        return self.gain / self.attempts_of_epoch if self.gain is not None and self.attempts_of_epoch else None

    @property
    def lead(self) -> LenientJson:
        return self.view.best_and_lead[1]

    @property
    def is_time_known(self) -> bool:
        """Whether status.json says how long the run was supervised. The end of the curve is a lower bound else."""
        return self.view.status.number("clock") is not None

    @property
    def took(self) -> str:
        """In words, how long the run was supervised."""
        return ("" if self.is_time_known else "≥") + format.duration(self.curve.end)

    @property
    def money(self) -> float | None:
        return self.view.status.inner("spent").number("money")

    @property
    def tokens(self) -> float | None:
        return self.view.status.inner("spent").number("tokens")

    def unknown_of(self, what: BudgetKey) -> list[str] | None:
        """Return the agents that may have used more tokens (`what`), or more money, than is counted; None if
        status.json cannot be read."""
        return self.view.status.texts(f"{what}_unknown_of") if self.view.status else None

    def over_time(self) -> list[tuple[float, float]]:
        """Return (seconds of the run's clock, the best from then on) for each step, and for the end."""
        points = [(step.at, step.value) for step in self.curve.steps]
        return [*points, (self.curve.end, points[-1][1])] if points else []

    def over_attempts(self) -> list[tuple[float, float]]:
        """Return (how many attempts were graded, the best from then on) for each step, and for the end. Attempts of the
        kind tune are counted, void ones are not."""
        points: list[tuple[float, float]] = []
        graded = 0
        steps = list(self.curve.steps)
        for point in self.curve.points:
            while steps and steps[0].at < point.at:
                points.append((graded, steps.pop(0).value))
            graded += 1
        points += [(graded, step.value) for step in steps]
        return [*points, (float(graded), points[-1][1])] if points else []

    def data(self) -> dict[str, object]:
        status = self.view.status
        return {
            "run": self.view.name,
            "task": self.view.task,
            "folder": str(self.view.layout.root),
            "state": self.view.state,
            "reason": status.data.get("reason"),
            "epoch": self.view.epoch,
            "seed": self.view.baseline,
            "best": self.curve.best,
            "best_number": self.view.proven,
            "lead": self.lead.number("median"),
            "lead_number": self.lead.integer("number"),
            "gain": self.gain,
            "attempts": self.attempts,
            "attempts_of_epoch": self.attempts_of_epoch,
            "failed": self.view.failed,
            "agents": len(self.view.agents()),
            "seconds": self.curve.end if self.is_time_known else None,
            "seconds_to_best": self.curve.to_best,
            "money": self.money,
            "tokens": self.tokens,
            "tokens_unknown_of": self.unknown_of(BudgetKey.TOKENS),
            "money_unknown_of": self.unknown_of(BudgetKey.MONEY),
            "gain_per_attempt": self.gain_per_attempt,
        }


def outcome_of(view: RunView) -> RunOutcome:
    config = config_of(view)
    curve = read_curve(view, read_figures(view.layout).clocks)
    return RunOutcome(view, curve, settings(config, defaults=True) if config else None)


def check_comparable(views: Sequence[RunView]) -> list[str]:
    """Return sentences about what makes a comparison of these runs doubtful. CoralError if it would mean nothing."""
    if not 2 <= len(views) <= MOST:
        raise CoralError(f"cannot compare {len(views)} runs: it takes 2 to {MOST}", "coral compare RUN RUN ...")
    roots = [view.layout.root.resolve() for view in views]
    twice = next((root for root in roots if roots.count(root) > 1), None)
    if twice is not None:
        raise CoralError(f"cannot compare {twice.name} with itself", "name another run; `coral runs` lists them")
    directions = {view.direction for view in views}
    if len(directions) > 1:
        one = ", ".join(f"{view.name} is to {view.direction}" for view in views)
        raise CoralError(f"cannot compare runs of different directions: {one}", "compare runs of one task")
    tasks = list(dict.fromkeys(view.task for view in views))
    concerns = (
        [f"different tasks ({', '.join(tasks)}): their scores may mean different things"] if len(tasks) > 1 else []
    )
    seeds = {view.baseline for view in views if view.baseline is not None}
    if len(seeds) > 1 and len(tasks) == 1:
        concerns.append("the seeds score differently: the seed or the grader is not the same")
    return concerns + [
        f"{view.name} is in epoch {view.epoch}: its scores, its gain and its curve are of that epoch alone, "
        "its attempts, its time and its use of all epochs"
        for view in views
        if view.epoch > 1
    ]


def differing(outcomes: Sequence[RunOutcome]) -> list[tuple[str, list[str]]]:
    """Return the settings in which the runs differ, each with its value in every run; empty for a run without that
    setting."""
    held = [outcome.settings or {} for outcome in outcomes]
    keys = dict.fromkeys(key for values in held for key in values)
    rows = [(key, [values.get(key, "") for values in held]) for key in keys]
    return [(key, values) for key, values in rows if len(set(values)) > 1]


def labels(views: Sequence[RunView]) -> list[str]:
    """Return a label for each run, the shortest that tells the runs apart: the last part of its name, its name, or its
    task and its name."""
    names = [view.name for view in views]
    tails = [name.rpartition("-")[2] for name in names]
    if len(set(tails)) == len(names) and all(tails):
        return tails
    return names if len(set(names)) == len(names) else [f"{view.task}/{view.name}" for view in views]
