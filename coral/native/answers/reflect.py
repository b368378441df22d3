"""The answer to `reflect`: a note that ties what was changed to what the score did, with the attempts as evidence.

A note is written where something was not expected; the log has all other results.
"""

from attempts.failures import kind_of
from attempts.record import IMPROVED, Verdict
from coral.native.format import difference, score_change, score_text
from coral.native.memory import Trial
from coral.native.search.bandit import gain
from coral.native.situation import Call, Remember, Say, Situation, WriteNote

FRUITLESS = 2  # tries of a family without a gain, after which a gain is a surprise
NOTABLE = 1e-6  # relative: check and grade that differ by less agree; smaller gains only move the last digits


def reflect(situation: Situation) -> tuple[Call, ...]:
    """Write a note on each surprising attempt that was not looked at yet, and a line in memory on the last of all."""
    unnoted = [trial for trial in situation.memory.trials if not trial.noted and trial.number is not None]
    if not unnoted:
        return (Say(text="I have looked at every attempt of mine; there is nothing new to reflect on."),)
    surprising = [trial for trial in unnoted if _is_surprising(situation, trial)]
    calls: list[Call] = [_note(situation, trial) for trial in surprising]
    last, numbers = unnoted[-1], tuple(trial.number for trial in unnoted if trial.number is not None)
    calls.append(Remember(block="learned", text=_summary(last), add=True, about=numbers))
    written = "The evidence is in the notes." if surprising else "It is as expected, so I write no note."
    calls.append(Say(text=f"{_title(last)}. {_meaning(situation, last)} {written}"))
    return tuple(calls)


def _is_surprising(situation: Situation, trial: Trial) -> bool:
    """Return whether an attempt is a surprise: its grade differs from the public check, it failed for a new kind of
    reason, or it is a new best that nothing had checked or whose family had gained nothing before."""
    if trial.verdict == Verdict.FAILED:
        earlier = [other for other in situation.memory.trials if (other.number or 0) < (trial.number or 0)]
        failed = {kind_of(other.reason) for other in earlier if other.verdict == Verdict.FAILED}
        return kind_of(trial.reason) not in failed
    gained = gain(trial.before, trial.score, situation.observation.direction)
    is_gain = trial.verdict == Verdict.NEW_BEST and (trial.before is None or gained > NOTABLE)
    return _differs(trial) or (is_gain and (trial.expected is None or _had_not_paid(situation, trial)))


def _had_not_paid(situation: Situation, trial: Trial) -> bool:
    """Return whether this agent had tried the family of the trial FRUITLESS times or more before, each time without a
    gain."""
    trials = situation.memory.trials
    earlier = [other for other in trials if other.family == trial.family and (other.number or 0) < (trial.number or 0)]
    return len(earlier) >= FRUITLESS and not any(other.verdict in IMPROVED for other in earlier)


def _differs(trial: Trial) -> bool:
    """Return whether the grade differs from the result of the public check."""
    if trial.score is None or trial.expected is None:
        return False
    return abs(trial.score - trial.expected) > NOTABLE * max(1.0, abs(trial.expected))


def _note(situation: Situation, trial: Trial) -> WriteNote:
    numbers = tuple(number for number in (trial.start, trial.number) if number is not None)
    parts = (_change(trial), _figure(situation, trial), _evidence(trial), _meaning(situation, trial))
    body = "\n\n".join(part for part in parts if part)
    name = f"{trial.number:04d}-{trial.family}-{trial.verdict.replace(' ', '-')}"
    return WriteNote(name=name, title=_title(trial), kind="note", attempts=numbers, body=body, about=numbers[-1:])


def _title(trial: Trial) -> str:
    result = f"{score_change(trial.before, trial.score)} ({difference(trial.before, trial.score)})"
    if trial.score is None:
        result = f"{trial.verdict}: {trial.reason or 'no score'}"
    elif trial.before is None:
        result = score_text(trial.score)
    return f"{trial.family} from #{trial.start if trial.start is not None else '?'} in #{trial.number}: {result}"


def _change(trial: Trial) -> str:
    return f"{trial.change[:1].upper()}{trial.change[1:]}."


def _figure(situation: Situation, trial: Trial) -> str:
    """Write the difference of the two scores in the form that `coral` compares with the records; empty if one of them
    is not the only score of its attempt."""
    start = situation.known.find(trial.start)
    if start is None or start.score is None or trial.score is None or len(start.scores) > 1:
        return ""
    return f"#{start.number} to #{trial.number}, {trial.score - start.score:+.6g}"


def _evidence(trial: Trial) -> str:
    """Say what the public check had said of the attempt; empty if check and grade agree."""
    if not trial.evaluations:
        return "One grade is all the evidence: there is no public check."
    if trial.score is None:
        return "The check had no objection to what the grader refused."
    if trial.expected is not None and _differs(trial):
        gap = abs(trial.score - trial.expected)
        return f"The check had said {score_text(trial.expected)}: it is off by {gap:.3g} here, and not the whole truth."
    return ""


def _meaning(situation: Situation, trial: Trial) -> str:
    if trial.verdict == Verdict.FAILED:
        return f"The grader gave no score: {trial.reason or 'no reason'}."
    gained = gain(trial.before, trial.score, situation.observation.direction)
    if gained and trial.verdict == Verdict.TIED:
        return f"The score differs by {gained:+.3g}, which is no more than grades of one commit do."
    if gained > NOTABLE and _had_not_paid(situation, trial):
        return f"`{trial.family}` had gained nothing before; from #{trial.start} it gained {gained:.3g}."
    if gained > 0.0:
        return f"It gained {gained:.3g} from #{trial.start}."
    if gained == 0.0 and trial.before is not None:
        return "The same score again."
    return f"It lost {-gained:.3g} from #{trial.start}." if trial.before is not None else "Its start has no score."


def _summary(trial: Trial) -> str:
    change = score_change(trial.before, trial.score)
    return f"#{trial.number} {trial.family} from #{trial.start}: {change}, {trial.verdict}"
