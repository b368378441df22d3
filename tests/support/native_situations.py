"""Situations for the brain of the native agent: trials, a history of attempts, and the calls that were answered."""

from dataclasses import replace

from sample import attempt

from attempts.record import Direction, Verdict
from coral.native.calls import Say, WriteNote
from coral.native.memory import AgentMemory, KnownAttempts, Trial
from coral.native.situation import Call, Situation

FAMILIES = ("descent", "rows", "shake", "cross", "scatter")
OBSERVATION = Situation(
    memory=AgentMemory(session="s"), agent="agent-1", direction=Direction.MAXIMIZE, families=FAMILIES
)


def trial(number: int, family: str, before: float | None, score: float | None, **fields: object) -> Trial:
    data: dict[str, object] = {
        "title": f"{family} from #{number - 1}: ...",
        "family": family,
        "start": number - 1,
        "before": before,
        "expected": score,
        "change": "2 of 8 values differ; most of all a.x 1 -> 2; b.y 3 -> 4",
        "number": number,
        "score": score,
        "verdict": "failed" if score is None else "own best" if score > (before or 0.0) else "worse",
    }
    return Trial(**{**data, **fields})  # type: ignore[arg-type]


def known(*records: object) -> KnownAttempts:
    return KnownAttempts().add(records, Direction.MAXIMIZE)  # type: ignore[arg-type]


def history() -> KnownAttempts:
    """Return nine attempts of two agents: of the families, rows gains for one of them only, shake for nobody, cross
    once."""
    records = [attempt(0, 1.0)]
    titles = {1: "rows", 3: "rows", 5: "rows", 2: "rows", 4: "rows", 6: "shake", 7: "shake", 8: "shake", 9: "cross"}
    best = 1.0
    for number, family in titles.items():
        won = family == "cross" or (family == "rows" and number % 2)
        score = best + 0.1 if won else best - 0.2
        best = max(best, score)
        verdict = Verdict.OWN_BEST if won else Verdict.WORSE
        records.append(attempt(number, score, title=f"{family} from #{max(0, number - 2)}: 1 -> 2", verdict=verdict))
    return known(*records)


def situation(
    *trials: Trial, observation: Situation = OBSERVATION, attempts: KnownAttempts | None = None, **fields: object
) -> Situation:
    memory = AgentMemory(session="s", trials=trials, known=history() if attempts is None else attempts)
    return replace(observation, memory=replace(memory, **fields))  # type: ignore[arg-type]


def said(calls: tuple[Call, ...]) -> str:
    return "\n".join(call.text for call in calls if isinstance(call, Say))


def notes(calls: tuple[Call, ...]) -> list[WriteNote]:
    return [call for call in calls if isinstance(call, WriteNote)]
