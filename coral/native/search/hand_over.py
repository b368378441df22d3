"""Hands an attempt over from an agent with a model, which wrote the program, to the agents that search: they tune its
numbers, and report the result in a note.

A hand-over is a skill in the shared knowledge, one for each author, which a new hand-over replaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attempts.record import Direction
from coral.native.answers.skill import front_of
from coral.native.format import attempt_list, score_text
from workspace import frontmatter
from workspace.knowledge import Skill

if TYPE_CHECKING:
    from coral.native.situation import Situation, WriteNote

FORM = "coral-hand-over/1"
TRIES = 4  # attempts that each searching agent makes from the attempt, before it goes on from its own best


@dataclass(frozen=True, slots=True)
class HandOver:
    """A hand-over. `given_back`: whether the agent that reads it has written its note about the result."""

    author: str
    attempt: int
    given_back: bool = False


def front_matter(author: str, attempt: int, why: str) -> dict[str, frontmatter.Value]:
    """Return the front matter that `hand_over_of` reads."""
    description = f"Tune the numbers of #{attempt}, whose author hands it over: {why}"
    return {"description": description, "author": author, "form": FORM, "attempt": attempt}


def note_name(attempt: int, agent: str) -> str:
    """Return the name of the note in which an agent reports the result."""
    return f"tuned-{attempt}-by-{agent}"


def hand_over_of(skill: Skill) -> HandOver | None:
    """Read a skill of this run as a hand-over; None if it is none."""
    number = frontmatter.words(front_of(skill, FORM).get("attempt"))
    return HandOver(skill.author, int(number)) if number.isdecimal() and len(number) <= 9 else None


def start_from(situation: Situation) -> tuple[int, str] | None:
    """Return the attempt to tune next, and why: the best so far of the newest hand-over that has tries left; None if
    there is none."""
    for handed in sorted(situation.observation.hand_overs, key=lambda handed: -handed.attempt):
        line = _line(situation, handed)
        held = [found for number in line if (found := situation.known.find(number)) and found.score is not None]
        if handed.author == situation.observation.agent or handed.given_back or not held or len(line) > TRIES:
            continue
        scores = {found.number: found.score for found in held if found.score is not None}
        best = _best(situation, scores)
        return best, f"{handed.author} hands #{handed.attempt} over, try {len(line)} of {TRIES}"
    return None


def report(situation: Situation) -> tuple[WriteNote, ...]:
    """Return the note on the result of a hand-over that has had its tries; empty if there is none to report."""
    from coral.native.situation import WriteNote

    for handed in situation.observation.hand_overs:
        line = _line(situation, handed)
        if len(line) <= TRIES or handed.given_back or handed.author == situation.observation.agent:
            continue
        scores = {trial.number: trial.score for trial in situation.memory.trials if trial.number in line}
        start = situation.known.find(handed.attempt)
        graded = {trial: score for trial, score in scores.items() if trial is not None and score is not None}
        best = graded[_best(situation, graded)] if graded else None
        came = f"{score_text(start.score if start else None)} -> {score_text(best)}"
        title = f"The numbers of #{handed.attempt} are tuned: {came}"
        body = (
            f"{attempt_list(line[1:])} vary the numbers of #{handed.attempt}, which "
            f"{handed.author} handed over; the best of them scores {score_text(best)}. More has to come from another "
            f"program, or from other numbers to vary: the next step is {handed.author}'s."
        )
        name = note_name(handed.attempt, situation.observation.agent)
        return (WriteNote(name=name, title=title, kind="note", attempts=tuple(line), body=body),)
    return ()


def _best(situation: Situation, scores: Mapping[int, float]) -> int:
    """Return the number with the best score; of equals, the earliest."""
    sign = -1.0 if situation.observation.direction is Direction.MAXIMIZE else 1.0
    return min(scores, key=lambda number: (sign * scores[number], number))


def _line(situation: Situation, handed: HandOver) -> list[int]:
    """Return the attempt that was handed over and the agent's own attempts that began at it or at one of these."""
    line = [handed.attempt]
    for trial in situation.memory.trials:
        if trial.number is not None and trial.start in line:
            line.append(trial.number)
    return line
