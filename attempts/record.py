"""One attempt as data: its commit, its score and its verdict.

The supervisor writes a record once. Data from a file is checked field by field before it becomes a record, so that no
other module has to handle a score that is no number or a commit that is no commit.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from attempts.fields import SUBMISSION_ID, Fields, json_safe, one_line, printable, shown

TITLE_LIMIT = 500
OPEN, CLOSED = "open", "closed"  # values of `channel`: whether code of the candidate may have written the result
COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
COMMIT_OR_NONE = re.compile(rf"({COMMIT.pattern})?")
LARGEST = math.nextafter(math.inf, 0.0)

Metric = float | int | str | bool | None


class Direction(StrEnum):
    """Which of two scores is better: the larger or the smaller one."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    def better(self, a: float, b: float) -> bool:
        """Return whether `a` is strictly better than `b`."""
        return a > b if self is Direction.MAXIMIZE else a < b


class Verdict(StrEnum):
    """What became of an attempt. Whose best it is, is said: the fleet's is proven, the agent's own is one score."""

    NEW_BEST = "new best"
    OWN_BEST = "own best"
    TIED = "tied"
    WORSE = "worse"
    FAILED = "failed"
    VOID = "void"


class Kind(StrEnum):
    """What an attempt is for: docs/architecture.md, Words."""

    REAL = "real"
    TUNE = "tune"
    CONFIRM = "confirm"
    BASELINE = "baseline"
    HOLDOUT = "holdout"  # no attempt, and no record: a grade that only the supervisor sees


UNSCORED = frozenset({Verdict.FAILED, Verdict.VOID})
IMPROVED = frozenset({Verdict.NEW_BEST, Verdict.OWN_BEST})


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One graded commit. `agent` is its author, also of what the supervisor measures again; the seed has neither author
    nor `parent`. `order` is the order of publication. `epoch` counts the tasks that the run had, from 1: scores of two
    epochs are not compared.

    `seal`: the level at which the agent that submitted it was sealed; empty for the supervisor's own.

    `of`: the attempt of the same tree that this one measures again. `against`: the attempt that the verdict compares it
    with; `delta` is its score less what that scored: the median by then, in a pair the score beside it.
    """

    number: int
    agent: str
    kind: Kind
    commit: str
    tree: str
    parent: str
    title: str
    submission: str
    submitted_at: str
    published_at: str
    order: int
    verdict: Verdict
    score: float | None
    reason: str = ""
    feedback: str = ""
    metrics: Mapping[str, Metric] = field(default_factory=dict, hash=False)
    of: int | None = None
    against: int | None = None
    delta: float | None = None
    seconds: float = 0.0
    channel: str = OPEN
    seal: str = ""
    epoch: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A commit that an agent submits for grading. `wait`: for how many seconds its `coral eval` waits for the grade."""

    id: str
    agent: str
    commit: str
    tree: str
    title: str
    kind: Kind
    wait: float
    submitted_at: str


def to_dict(item: Attempt | Submission) -> dict[str, object]:
    """Return the plain data of an attempt or submission for JSON, whatever a grader returned; `attempt_from_dict` and
    `submission_from_dict` accept it."""
    values = {name: getattr(item, name) for name in item.__slots__}
    data = {name: printable(str(value)) if isinstance(value, str) else value for name, value in values.items()}
    if isinstance(item, Attempt):
        data["metrics"] = {printable(str(name)): json_safe(value) for name, value in item.metrics.items()}
    return data


def attempt_from_dict(data: Mapping[str, object]) -> Attempt:
    """Make an attempt from a published record. ValueError names the field that is wrong, missing or unknown."""
    fields = Fields(data, Attempt.__slots__)
    verdict = fields.choice("verdict", Verdict)
    kind = fields.choice("kind", Kind)
    if kind is Kind.HOLDOUT:
        raise fields.wrong("kind", "the kind of an attempt")
    return Attempt(
        number=fields.integer("number"),
        agent=fields.text("agent"),
        kind=kind,
        commit=fields.matching("commit", COMMIT, "a commit"),
        tree=fields.matching("tree", COMMIT, "a tree"),
        parent=fields.matching("parent", COMMIT_OR_NONE, "a commit or nothing"),
        title=one_line(fields.text("title"), TITLE_LIMIT),
        submission=fields.text("submission"),
        submitted_at=fields.text("submitted_at"),
        published_at=fields.text("published_at"),
        order=fields.integer("order"),
        verdict=verdict,
        score=_score(fields, verdict),
        reason=fields.text("reason", ""),
        feedback=fields.text("feedback", ""),
        metrics=_metrics(fields),
        of=_of(fields, kind),
        against=_number(fields, "against"),
        delta=_finite(fields, "delta"),
        seconds=fields.number("seconds", 0.0),
        channel=fields.text("channel", OPEN),
        seal=fields.text("seal", ""),
        epoch=fields.integer("epoch", 1),
    )


def submission_from_dict(data: Mapping[str, object], agent: str) -> Submission:
    """Make a submission from what an agent wrote. `agent`: the owner of the folder that the file was in, whatever the
    file says. ValueError as for `attempt_from_dict`."""
    fields = Fields(data, Submission.__slots__)
    kind = fields.choice("kind", Kind)
    if kind not in (Kind.REAL, Kind.TUNE):
        raise ValueError(f"kind: {kind} is graded by the supervisor alone and cannot be submitted")
    return Submission(
        id=fields.matching("id", SUBMISSION_ID, "20 digits"),
        agent=agent,
        commit=fields.matching("commit", COMMIT, "a commit"),
        tree=fields.matching("tree", COMMIT, "a tree"),
        title=one_line(fields.text("title"), TITLE_LIMIT),
        kind=kind,
        wait=fields.number("wait"),
        submitted_at=one_line(fields.text("submitted_at"), 40),
    )


def _score(fields: Fields, verdict: Verdict) -> float | None:
    value = _finite(fields, "score")
    if (value is None) != (verdict in UNSCORED):
        raise ValueError(f"score: {shown(value)} does not go with the verdict {verdict}")
    return value


def _finite(fields: Fields, name: str) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        raise fields.wrong(name, "a finite number")
    return float(value)


def _number(fields: Fields, name: str) -> int | None:
    return None if fields.get(name) is None else fields.integer(name)


def _of(fields: Fields, kind: Kind) -> int | None:
    """Return the attempt that this one measures again, if it is a confirmation or a duplicate."""
    if kind in (Kind.TUNE, Kind.BASELINE) and fields.get("of") is not None:
        raise fields.wrong("of", f"nothing for the kind {kind}")
    return fields.integer("of") if kind is Kind.CONFIRM else _number(fields, "of")


def _metrics(fields: Fields) -> dict[str, Metric]:
    value = fields.get("metrics", {})
    if not isinstance(value, Mapping):
        raise fields.wrong("metrics", "names with values")
    for name, metric in value.items():
        plain = isinstance(metric, str) or json_safe(metric) == metric
        if not isinstance(name, str) or not plain:
            raise ValueError(f"metrics: {shown(name)} is not a plain value")
    return {printable(name): json_safe(metric) for name, metric in value.items()}
