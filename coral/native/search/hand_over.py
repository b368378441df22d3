"""Tunes the numbers of an attempt that an agent with a model hands over: a few tries from it, then a note on the
result."""

from collections.abc import Iterator

from coral.native.calls import WriteNote
from coral.native.format import attempt_list, score_text
from coral.native.memory import rank
from coral.native.shared_skills import HandOver
from coral.native.situation import Situation

TRIES = 4  # attempts that each searching agent makes from the attempt, before it goes on from its own best


def start_from(situation: Situation) -> tuple[int, str] | None:
    """Return the attempt to tune next, and why: the best so far of the newest hand-over that has tries left; None if
    there is none."""
    for handed, line in _lines(situation):
        held = [found for number in line if (found := situation.known.find(number)) and found.score is not None]
        if held and len(line) <= TRIES:
            best = min(held, key=rank(situation.direction))
            return best.number, f"{handed.author} hands #{handed.attempt} over, try {len(line)} of {TRIES}"
    return None


def report(situation: Situation) -> tuple[WriteNote, ...]:
    """Return the note on the result of a hand-over that has had its tries; empty if there is none to report."""
    for handed, line in _lines(situation):
        if len(line) <= TRIES:
            continue
        start, graded = situation.known.find(handed.attempt), situation.memory.graded
        scored = [trial for number in line[1:] if (trial := graded[number]).score is not None]
        best = min(scored, key=rank(situation.direction)).score if scored else None
        came = f"{score_text(start.score if start else None)} -> {score_text(best)}"
        body = (
            f"{attempt_list(line[1:])} vary the numbers of #{handed.attempt}, which {handed.author} handed over; the "
            f"best of them scores {score_text(best)}. More has to come from another program, or from other numbers to "
            f"vary: the next step is {handed.author}'s."
        )
        title = f"The numbers of #{handed.attempt} are tuned: {came}"
        name = handed.note_of(situation.agent)
        return (WriteNote(name=name, title=title, attempts=tuple(line), body=body),)
    return ()


def _lines(situation: Situation) -> Iterator[tuple[HandOver, list[int]]]:
    """Yield the attempts that others hand over and this agent has not given back, the newest first; each with its line:
    itself, and the agent's own attempts that began at it or at one of these."""
    for handed in sorted(situation.hand_overs, key=lambda handed: -handed.attempt):
        if handed.author != situation.agent and not handed.given_back:
            line = [handed.attempt]
            for number, trial in situation.memory.graded.items():
                if trial.start in line:
                    line.append(number)
            yield handed, line
