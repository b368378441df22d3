"""The answer to `reflect`: a note that ties what was changed to what the score did, with the attempts as evidence.

A note is written where something was not expected, and says what; the log has all other results.
"""

from statistics import median

from attempts.failures import kind_of
from attempts.record import IMPROVED, Verdict
from coral.native.calls import Remember, Say, WriteNote
from coral.native.format import score_text
from coral.native.memory import Trial
from coral.native.search.bandit import gain
from coral.native.situation import Call, Situation

FRUITLESS = 2  # tries of a family without a gain, after which a gain is a surprise
NOTABLE = 1e-6  # relative: check and grade that differ by less agree; smaller gains only move the last digits
UNUSUAL = 3.0  # times the median difference so far, from which on check and grade differ unexpectedly


def reflect(situation: Situation) -> tuple[Call, ...]:
    """Write a note on each surprising attempt that was not looked at yet, and a line in memory on the last of all."""
    graded = situation.memory.graded
    new = [number for number in graded if number > situation.memory.reflected]
    if not new:
        return (Say(text="I have looked at every attempt of mine; there is nothing new to reflect on."),)
    notes = [_note(situation, number, words) for number in new if (words := _surprises(situation, number))]
    last = graded[new[-1]]
    line = f"{_title(last)}, {last.verdict}"
    written = "The evidence is in the notes." if notes else "It is as expected, so I write no note."
    remembered = Remember(block="learned", text=line, add=True, reflected=new[-1])
    return (*notes, remembered, Say(text=f"{line}. {written}"))


def _surprises(situation: Situation, number: int) -> list[str]:
    """Say what was not expected of an attempt: it failed for a new kind of reason, its grade differs from the public
    check by more than usual, or it is a new best that nothing had checked or whose family had gained nothing before.
    Empty if nothing."""
    graded = situation.memory.graded
    trial, earlier = graded[number], [graded[other] for other in graded if other < number]
    if trial.verdict == Verdict.FAILED:
        known = {kind_of(other.reason) for other in earlier if other.verdict == Verdict.FAILED}
        checked = " The check had no objection." if trial.expected is not None else ""
        is_new = kind_of(trial.reason) not in known
        return [f"The grader gave no score: {trial.reason or 'no reason'}.{checked}"] if is_new else []
    words = []
    gap, gaps = _gap(trial), [abs(other_gap) for other in earlier if (other_gap := _gap(other)) is not None]
    least = max(NOTABLE * max(1.0, abs(trial.expected or 0.0)), UNUSUAL * median(gaps or [0.0]))
    if gap is not None and abs(gap) > least:
        words.append(f"The check had said {score_text(trial.expected)}: it is off by {gap:+.3g}, not the whole truth.")
    gained = gain(trial.before, trial.score, situation.direction)
    if trial.verdict == Verdict.NEW_BEST and (trial.before is None or gained > NOTABLE):
        same = [other for other in earlier if other.family == trial.family]
        if len(same) >= FRUITLESS and not any(other.verdict in IMPROVED for other in same):
            words.append(f"`{trial.family}` had gained nothing before; from #{trial.start} it gained {gained:.3g}.")
        elif trial.expected is None:
            words.append("It is a new best that nothing had checked: one grade is all the evidence.")
    return words


def _gap(trial: Trial) -> float | None:
    """Return the grade minus what the public check said; None if one of them is missing."""
    return trial.score - trial.expected if trial.score is not None and trial.expected is not None else None


def _note(situation: Situation, number: int, surprises: list[str]) -> WriteNote:
    trial = situation.memory.graded[number]
    start, is_first = situation.known.find(trial.start), str(trial.start) not in situation.known.scores
    parts = [f"{trial.change[:1].upper()}{trial.change[1:]}.", *surprises]
    if start is not None and start.score is not None and trial.score is not None and is_first:
        # As `coral` compares it with the records, which it can if each of the two has one score.
        parts.insert(1, f"#{start.number} to #{number}, {trial.score - start.score:+.6g}.")
    name = f"{number:04d}-{trial.family}-{trial.verdict.replace(' ', '-')}"
    numbers = (number,) if trial.start is None else (trial.start, number)
    return WriteNote(name=name, title=_title(trial), attempts=numbers, body="\n\n".join(parts))


def _title(trial: Trial) -> str:
    start = trial.start if trial.start is not None else "?"
    result = f"{score_text(trial.before)} -> {score_text(trial.score)}"
    if trial.score is None:
        result = f"{trial.verdict}: {trial.reason or 'no score'}"
    elif trial.before is not None:
        result += f" ({trial.score - trial.before:+.3g})"
    return f"{trial.family} from #{start} in #{trial.number}: {result}"
