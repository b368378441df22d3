"""Tunes the numbers of an attempt that an agent with a model hands over: a few tries from it, then a note on the
result."""

from collections.abc import Iterator

from coral.native.calls import WriteNote
from coral.native.format import attempt_list, score_text
from coral.native.memory import rank
from coral.native.shared_skills import HandOver
from coral.native.situation import Situation

TRIES = 4  # searches that each agent makes from the attempt, before it goes on from its own best


def start_from(situation: Situation) -> tuple[int, str] | None:
    """Return the attempt to tune next, and why: the best so far of the newest hand-over that has tries left; None if
    there is none."""
    for handed, line, tries in _lines(situation):
        held = [found for number in line if (found := situation.known.find(number)) and found.score is not None]
        if held and tries < TRIES:
            best = min(held, key=rank(situation.direction))
            return best.number, f"{handed.author} hands #{handed.attempt} over, try {tries + 1} of {TRIES}"
    return None


def report(situation: Situation) -> tuple[WriteNote, ...]:
    """Return the note on the result of a hand-over that has had its tries; empty if there is none to report."""
    for handed, line, tries in _lines(situation):
        if tries < TRIES:
            continue
        given = f"#{handed.attempt}, which {handed.author} handed over"
        result = "could not be tuned"
        body = (
            f"No search from {given}, led to an attempt: the public check rejects it or is too slow for it, or its "
            "files hold nothing to vary, or too much."
        )
        if made := [situation.memory.graded[number] for number in line[1:]]:
            start, scored = situation.known.find(handed.attempt), [trial for trial in made if trial.score is not None]
            best = score_text(min(scored, key=rank(situation.direction)).score if scored else None)
            result = f"are tuned: {score_text(start.score if start else None)} -> {best}"
            body = (
                f"{attempt_list(line[1:])} vary the numbers of {given}; the best of them scores {best}. More has to "
                "come from another program, or from other numbers to vary."
            )
        title = f"The numbers of #{handed.attempt} {result}"
        body += f" The next step is {handed.author}'s."
        return (WriteNote(name=handed.note_of(situation.agent), title=title, attempts=tuple(line), body=body),)
    return ()


def _lines(situation: Situation) -> Iterator[tuple[HandOver, list[int], int]]:
    """Yield the attempts that others hand over and this agent has not given back, the newest first; each with its line:
    itself, and the agent's own attempts that began at it or at one of these; and with how many searches began there,
    those that led to no attempt included: TRIES if its files cannot be searched."""
    for handed in sorted(situation.hand_overs, key=lambda handed: -handed.attempt):
        if handed.author != situation.agent and not handed.given_back:
            line, tries = [handed.attempt], 0
            for trial in situation.memory.trials:
                if trial.start in line:
                    tries += 1
                    line += [trial.number] if trial.number is not None else []
            yield handed, line, max(tries, TRIES * (handed.attempt in situation.memory.unusable))
