"""The scores and the task that graders of the other CORAL use. They import them from `coral.types`.

Docs: docs/import.md. A grader of ours returns a number or a `coral.types.Result` and needs none of this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

TYPE_CHECKING = False  # as in typing, which takes as long to import as a small grader to run
if TYPE_CHECKING:
    from typing import Any, Self


class _Plain:
    """A dataclass that converts to a dict and back; keys that it does not have are left out."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]  # every subclass is a dataclass

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        known: Mapping[str, object] = getattr(cls, "__dataclass_fields__")  # noqa: B009 - a subclass has it
        return cls(**{name: value for name, value in data.items() if name in known})


@dataclass
class Task(_Plain):
    """What is graded. `metadata` has `budget_class` (real or tune), `agent_id` and `commit_hash`."""

    id: str
    name: str
    description: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class Score(_Plain):
    """One named score; `value` is None where there is none."""

    value: Any
    name: str
    explanation: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class ScoreBundle(_Plain):
    """Scores by name. Only `aggregated` counts: an attempt without it has failed, whatever its parts are."""

    scores: dict[str, Score]
    aggregated: Any = None
    is_public: bool = True
    feedback: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Score | None:
        return self.scores.get(name)

    def get_score_value(self, name: str, default: float = 0.0) -> float:
        """Return the value of the score of that name; `default` if there is none."""
        score = self.scores.get(name)
        return default if score is None or score.value is None else float(score.value)

    def compute_aggregated(self, weights: Mapping[str, float] | None = None) -> float:
        """Return the mean of the scores that have a value, each with its weight (1 if none is given); 0 if none has a
        value. `aggregated` is not changed."""
        weighed = [
            (float(score.value), (weights or {}).get(name, 1.0))
            for name, score in self.scores.items()
            if score.value is not None
        ]
        total = sum(weight for _, weight in weighed)
        return sum(value * weight for value, weight in weighed) / total if total else 0.0

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        bundle = super().from_dict(data)
        bundle.scores = {
            name: score if isinstance(score, Score) else Score.from_dict(score) for name, score in bundle.scores.items()
        }
        return bundle
