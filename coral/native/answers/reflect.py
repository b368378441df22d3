"""The answer to `reflect`: a note that ties what was changed to what the score did, with the attempts it rests on."""

from __future__ import annotations

from attempts.record import Verdict
from coral.native.calls import Call, Remember, Say, WriteNote
from coral.native.format import both, decimals, difference, gain, score
from coral.native.memory import Trial
from coral.native.search.families import FAMILIES
from coral.native.situation import Situation

MISSED = 1e-6  # relative: how far check and grade may lie apart before it is worth a word


def reflect(situation: Situation) -> tuple[Call, ...]:
    """A note on every attempt that has none; a word where there is nothing new."""
    fresh = [trial for trial in situation.memory.trials if not trial.noted and trial.number is not None]
    if not fresh:
        return (Say(text="No attempt of mine is without a note; there is nothing new to reflect on."),)
    calls: list[Call] = [_note(situation, trial) for trial in fresh]
    last = fresh[-1]
    calls.append(Remember(block="learned", text=_lesson(last), add=True))
    calls.append(Say(text=f"{_title(last)}. {_meaning(situation, last)} The evidence is in the notes."))
    return tuple(calls)


def _note(situation: Situation, trial: Trial) -> WriteNote:
    numbers = tuple(number for number in (trial.start, trial.number) if number is not None)
    body = "\n\n".join(
        part
        for part in (
            f"# {_title(trial)}",
            _what(trial),
            _happened(situation, trial),
            "**How I know.** " + _effort(trial),
            f"**What it means.** {_meaning(situation, trial)}",
            f"**What follows.** {_follows(situation, trial)}",
        )
        if part
    )
    name = f"{trial.number:04d}-{trial.family}-{trial.verdict}"
    return WriteNote(name=name, title=_title(trial), kind="note", attempts=numbers, body=body, about=numbers[-1:])


def _title(trial: Trial) -> str:
    came = f"{both(trial.before, trial.score)} ({difference(trial.before, trial.score)})"
    if trial.score is None:
        came = f"{trial.verdict}: {trial.reason or 'no score'}"
    elif trial.before is None:
        came = score(trial.score)
    return f"{trial.family} from #{trial.start if trial.start is not None else '?'} in #{trial.number}: {came}"


def _what(trial: Trial) -> str:
    about = FAMILIES[trial.family].about if trial.family in FAMILIES else "a move of unknown kind"
    start = f"#{trial.start}" if trial.start is not None else "the files as they were"
    change = trial.change[:1].upper() + trial.change[1:]
    return f"**What changed.** From {start}, the family `{trial.family}` ({about}). {change}."


def _happened(situation: Situation, trial: Trial) -> str:
    lead = situation.leader
    rows = ["| | score |", "|---|---:|"]
    digits = decimals(trial.before, trial.expected, trial.score, lead.score if lead else None)
    if trial.start is not None:
        rows.append(f"| start, #{trial.start} | {score(trial.before, digits)} |")
    if trial.expected is not None:
        rows.append(f"| the public check of the candidate | {score(trial.expected, digits)} |")
    rows.append(f"| **graded, #{trial.number}** ({trial.verdict}) | **{score(trial.score, digits)}** |")
    if lead is not None and lead.number != trial.number:
        rows.append(f"| best of the fleet, #{lead.number} ({lead.agent or 'seed'}) | {score(lead.score, digits)} |")
    return "**What happened.**\n\n" + "\n".join(rows)


def _effort(trial: Trial) -> str:
    if not trial.evaluations:
        return "There is no public check: this one attempt is all the evidence, and a second one would make it surer."
    moves = f"{trial.moves} moves" if trial.moves != 1 else "one move"
    evaluations = f"{trial.evaluations:,} evaluations of the public check in {trial.seconds:.1f} s"
    text = f"{moves} and {evaluations} led to this candidate."
    off = abs(trial.score - trial.expected) if trial.score is not None and trial.expected is not None else 0.0
    if trial.expected is not None and off > MISSED * max(1.0, abs(trial.expected)):
        return text + f" The grade differs from the check by {off:.3g}: the check is not the whole truth here."
    if trial.score is not None:
        return text + " Check and grade agree, so the check can be trusted at this point."
    return text + " The check had no objection to what the grader refused: they differ."


def _meaning(situation: Situation, trial: Trial) -> str:
    mine = [t for t in situation.memory.trials if t.family == trial.family and t.number is not None]
    won = sum(t.verdict == Verdict.IMPROVED for t in mine)
    record = f"`{trial.family}` has improved {won} of my {len(mine)} attempts with it"
    if trial.verdict == Verdict.FAILED:
        said = trial.reason or "no reason"
        return f"The grader gave no score ({said}); what the candidate has that its start lacks is the cause."
    better = gain(trial.before, trial.score, situation.world.direction)
    if better > 0:
        kind = (
            "and the gain is far above rounding" if better > MISSED else "but so little that only the last digits moved"
        )
        return f"The change gained {better:.3g}, {kind}; {record}."
    if better == 0.0 and trial.before is not None:
        return f"The same score again: the moves fell back to where they came from. {record[:1].upper()}{record[1:]}."
    away = (
        f"the best of what is different lies {-better:.3g} behind"
        if trial.before is not None
        else "no start to compare with"
    )
    return (
        f"Around #{trial.start} this family found nothing better in {max(1, trial.moves)} moves; {away}. "
        f"That speaks for a local optimum there, as far as this family reaches; {record}."
    )


def _follows(situation: Situation, trial: Trial) -> str:
    if trial.verdict == Verdict.IMPROVED:
        return f"More of `{trial.family}`, now from #{trial.number}."
    if trial.verdict == Verdict.FAILED:
        return "Back to the start, and away from what the grader refused."
    others = [name for name in situation.world.families if name != trial.family]
    lead, own = situation.leader, situation.own
    behind = lead is not None and own is not None and lead.number != own.number
    hint = f" #{lead.number} of {lead.agent} is ahead and worth starting from." if behind and lead is not None else ""
    return f"Another family gets its turn ({', '.join(f'`{name}`' for name in others[:4])}).{hint}"


def _lesson(trial: Trial) -> str:
    return f"#{trial.number} {trial.family} from #{trial.start}: {both(trial.before, trial.score)}, {trial.verdict}"
