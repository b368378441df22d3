"""A grade in an agent's words: number, score, verdict, how far from its best, feedback. Standard library only."""

from __future__ import annotations

import json

from attempts.record import Attempt, Kind, Verdict, to_dict
from attempts.store import Store
from coral.cli.run_data import submissions
from coral.cli.run_data.lenient_json import LenientJson
from coral.cli.run_data.submissions import Outcome, published
from coral.views import format

FAR_BACK = 500  # earlier submissions looked at for the last improvement; beyond that the difference is left out
MEANING = {
    Verdict.IMPROVED: "your best so far",
    Verdict.TIED: "no better than your best",
    Verdict.REGRESSED: "worse than your best",
    Verdict.FAILED: "the grader could not score it",
    Verdict.VOID: "not your fault; it does not count",
}


def text(store: Store, attempt: Attempt) -> str:
    """The result of an attempt, for the agent that made it."""
    score = format.score(attempt.score) if attempt.score is not None else "no score"
    kind = f" ({attempt.kind})" if attempt.kind in (Kind.TUNE, Kind.CONFIRM) else ""
    verdict = f"{attempt.verdict} - {MEANING[attempt.verdict]}{_against(store, attempt)}"
    lines = [f"#{attempt.number}{kind}: {score}, {verdict}"]
    if attempt.reason:
        lines.append(f"reason: {format.clean(attempt.reason)}")
    lines += [f"{format.line(name)}: {_metric(value)}" for name, value in attempt.metrics.items()]
    if attempt.feedback.strip():
        lines += ["", format.clean(attempt.feedback).strip()]
    return "\n".join(lines)


def data(store: Store, outcome: Outcome) -> str:
    """The same for programs, whatever the outcome."""
    attempt = outcome.attempt
    said: dict[str, object] = {"attempt": outcome.number, "state": state(outcome)}
    if outcome.refused:
        said |= {"refused": outcome.refused, "hint": outcome.hint, "reason": outcome.reason}
    if attempt is not None:
        base = before(store, attempt)
        said |= {"record": to_dict(attempt), "against": {"attempt": base.number, "score": base.score} if base else None}
        said["heartbeats"] = list(outcome.heartbeats)
        said["inline"] = [{"id": each.id, "name": each.name, "text": each.text} for each in outcome.inline]
    return json.dumps(said, indent=1)


def state(outcome: Outcome) -> str:
    if outcome.refused:
        return "refused"
    return "graded" if outcome.attempt is not None else "pending"


def before(store: Store, attempt: Attempt) -> Attempt | None:
    """What an attempt is measured against: the agent's last improvement before it, or else the seed.

    The supervisor names it in its reply. Where it did not, it is looked for by walking back, but not for ever.
    """
    reply = store.read_reply(attempt.agent, attempt.submission) if attempt.submission else None
    named = LenientJson(reply).integer("against")
    if named is not None:
        return published(store, named)
    earlier = [name for name in submissions.own(store, attempt.agent) if name < attempt.submission]
    for name in reversed(earlier[-FAR_BACK:]):
        found = published(store, LenientJson(store.read_reply(attempt.agent, name)).integer("attempt"))
        if found is None or found.kind is Kind.TUNE or found.order > attempt.order:
            continue
        if found.verdict is Verdict.IMPROVED:
            return found
    return published(store, 0) if len(earlier) <= FAR_BACK else None


def _against(store: Store, attempt: Attempt) -> str:
    base = before(store, attempt)
    difference = format.delta(attempt.score, base.score) if base else ""
    if base is None or not difference:
        return ""
    name = "the seed" if base.kind is Kind.BASELINE else f"#{base.number}"
    return f" ({difference} against {name}, {format.score(base.score)})"


def _metric(value: object) -> str:
    return format.score(value) if isinstance(value, float) else format.line(value)
