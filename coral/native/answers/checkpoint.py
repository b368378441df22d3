"""The answer to `checkpoint`: a report on the checklist; its last line is `HEARTBEAT_OK` or an alert."""

from attempts.record import Verdict
from coral.native.format import attempt_list, score_text
from coral.native.situation import Situation

LITTLE_DISK = 0.02  # free share
FAILURES = 3  # failed attempts in a row that are worth an alert
FOR_US = "- native:"  # begins the lines of the checklist that this agent repeats: it reads no other prose


def checkpoint(situation: Situation) -> str:
    memory, observation = situation.memory, situation.observation
    graded = [trial for trial in memory.trials if trial.number is not None]
    points = [
        "Nothing hangs: this program runs nothing but the public check, under a limit of time."
        if observation.has_check
        else "Nothing hangs: this program runs nothing of its own.",
        f"Submitted and not yet graded: {memory.pending.title}." if memory.pending else "Nothing waits for a grade.",
        f"My last results: {', '.join(f'#{trial.number} {trial.verdict}' for trial in graded[-5:]) or 'none yet'}.",
        standing(situation),
        f"Attempts of mine that I have not looked at: {sum(not trial.noted for trial in graded)}.",
        f"Free on the disk: {observation.free_disk:.0%}.",
    ]
    checklist = observation.checklist.splitlines()
    points += [f"Checklist: {line.removeprefix(FOR_US).strip()}" for line in checklist if line.startswith(FOR_US)]
    return "\n".join((*(f"- {point}" for point in points), "", _last_line(situation)))


def _last_line(situation: Situation) -> str:
    last = [trial for trial in situation.memory.trials if trial.number is not None][-FAILURES:]
    if len(last) == FAILURES and all(trial.verdict == Verdict.FAILED for trial in last):
        numbers = attempt_list([trial.number for trial in last if trial.number is not None])
        return f"ALERT: my last {FAILURES} attempts failed ({numbers}); the grader says: {last[-1].reason or 'nothing'}"
    if situation.observation.free_disk < LITTLE_DISK:
        return f"ALERT: only {situation.observation.free_disk:.1%} of the disk is free"
    return "HEARTBEAT_OK"


def standing(situation: Situation) -> str:
    """Say where this agent stands in the fleet, as a sentence."""
    own, best = situation.own_best, situation.fleet_best
    if own is None:
        return "I have no score yet."
    text = f"My best is #{own.number} with {score_text(own.score)}"
    if best is not None and best.number != own.number:
        of = best.agent or "the seed"
        return f"{text}; the fleet's highest is #{best.number} with {score_text(best.score)} by {of}."
    return f"{text}, the highest of the fleet."
