"""Grades a program as OpenEvolve does, by its `evaluator.py`. `coral import` writes graders that use this
(docs/import.md).

Standard library only. It must be imported before the evaluator, which may import `EvaluationResult` of OpenEvolve:
where that is not installed, a class of the same shape takes its place.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from coral.types import Fail, Result

TYPE_CHECKING = False  # as in typing, which takes as long to import as a small grader to run
if TYPE_CHECKING:
    from typing import Any

COMBINED = "combined_score"
THRESHOLDS = (0.5, 0.75)  # OpenEvolve's own: what the first and the second stage must reach
DIMENSIONS = ("complexity", "diversity")  # OpenEvolve's own: metrics that describe a program, and do not rate it
_SHOWN = 4000  # characters of one artifact


@dataclass
class EvaluationResult:
    """What an evaluator may return instead of a dict of metrics. `artifacts`: texts for the author of the next
    program."""

    metrics: dict[str, Any]
    artifacts: dict[str, str | bytes] = field(default_factory=dict)


def _stand_in() -> None:
    """Make `from openevolve.evaluation_result import EvaluationResult` give our class if OpenEvolve is not
    installed."""
    from importlib.util import find_spec

    if "openevolve" in sys.modules or find_spec("openevolve") is not None:
        return
    package, module = ModuleType("openevolve"), ModuleType("openevolve.evaluation_result")
    package.__path__ = []
    for place in (package, module):
        vars(place)["EvaluationResult"] = EvaluationResult
    sys.modules |= {"openevolve": package, "openevolve.evaluation_result": module}


_stand_in()


def evaluate_program(
    evaluator: ModuleType,
    program: Path,
    *,
    cascade: bool = True,
    thresholds: Sequence[float] = THRESHOLDS,
    dimensions: Iterable[str] = DIMENSIONS,
) -> Result:
    """Return the `combined_score` of a program, or the mean of its numeric metrics but `dimensions`. If the evaluator
    has stages and `cascade` is true, a program comes to the second stage by reaching the first of `thresholds`, and so
    on. Raises Fail if the evaluator gives no number."""
    metrics, artifacts = _evaluated(evaluator, str(program), thresholds if cascade else ())
    texts = [f"{name}:\n{_text(value)}" for name, value in artifacts.items()]
    score = _fitness(metrics, set(dimensions))
    if score is None:
        named = {name: value for name, value in metrics.items() if isinstance(value, str)}
        raise Fail(str(named.get("error") or "the evaluator gave no number"), "\n\n".join(texts))
    return Result(score=score, metrics=metrics, feedback="\n\n".join(texts))


def _evaluated(
    evaluator: ModuleType, program: str, thresholds: Sequence[float]
) -> tuple[dict[str, Any], dict[str, Any]]:
    stages = [getattr(evaluator, f"evaluate_stage{number}", None) for number in (1, 2, 3)]
    if not thresholds or stages[0] is None:
        return _parts(evaluator.evaluate(program))
    metrics: dict[str, Any] = {}
    artifacts: dict[str, Any] = {}
    for number, stage in enumerate(stages):
        if stage is None:
            break
        found, more = _parts(stage(program))
        metrics |= found
        artifacts |= more
        if number >= len(thresholds) or (_fitness(found, set()) or 0.0) < thresholds[number]:
            break
    return metrics, artifacts


def _parts(found: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metrics and the artifacts of an evaluation. TypeError for a value that OpenEvolve would not take."""
    if isinstance(found, Mapping):
        return dict(found), {}
    if isinstance(metrics := getattr(found, "metrics", None), Mapping):
        return dict(metrics), dict(getattr(found, "artifacts", None) or {})
    raise TypeError(f"the evaluator returned a {type(found).__name__}, not a dict of metrics")


def _fitness(metrics: Mapping[str, Any], dimensions: set[str]) -> float | None:
    numbers = {name: float(value) for name, value in metrics.items() if _is_number(value)}
    if COMBINED in numbers:
        return numbers[COMBINED]
    rated = [value for name, value in numbers.items() if name not in dimensions] or list(numbers.values())
    return sum(rated) / len(rated) if rated else None


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool | str | bytes) and hasattr(value, "__float__")


def _text(value: object) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."
