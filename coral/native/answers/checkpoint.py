"""The answer to `checkpoint`: a report on the checklist; its last line is `HEARTBEAT_OK` or an alert."""

from attempts.record import Verdict
from coral.native.format import attempt_list, score_text
from coral.native.situation import Situation

LITTLE_DISK = 0.02  # free share
FAILURES = 3  # failed attempts in a row that are worth an alert


def checkpoint(situation: Situation) -> str:
    memory, last = situation.memory, list(situation.memory.graded.values())[-5:]
    points = (
        "Nothing hangs: I run nothing but public checks, under a limit of time.",
        f"Submitted and not yet graded: {memory.pending.title if memory.pending else 'nothing'}.",
        f"My last results: {', '.join(f'#{trial.number} {trial.verdict}' for trial in last) or 'none yet'}.",
        standing(situation),
        f"Free on the disk: {situation.free_disk:.0%}.",
    )
    return "\n".join((*(f"- {point}" for point in points), "", _last_line(situation)))


def _last_line(situation: Situation) -> str:
    last = list(situation.memory.graded.items())[-FAILURES:]
    if len(last) == FAILURES and all(trial.verdict == Verdict.FAILED for _, trial in last):
        numbers, reason = attempt_list([number for number, _ in last]), last[-1][1].reason or "nothing"
        return f"ALERT: my last {FAILURES} attempts failed ({numbers}); the grader says: {reason}"
    if situation.free_disk < LITTLE_DISK:
        return f"ALERT: only {situation.free_disk:.1%} of the disk is free"
    return "HEARTBEAT_OK"


def standing(situation: Situation) -> str:
    """Say where this agent stands in the fleet, as a sentence."""
    own, best = situation.own_best, situation.fleet_best
    if own is None or best is None:
        return "I have no score yet."
    text = f"My best is #{own.number} with {score_text(own.score)}"
    ahead = f"; the fleet's highest is #{best.number} with {score_text(best.score)} by {best.agent or 'the seed'}."
    return text + (ahead if best.number != own.number else ", the highest of the fleet.")
