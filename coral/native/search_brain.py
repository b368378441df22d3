"""The brain `search`: adaptive search over the numbers and choices of the editable files. It uses no model.

It answers each heartbeat by doing what it asks, then chooses the next family by credit and the next start by standing.
"""

from __future__ import annotations

from random import Random

from coral.native.answers.answer import answer
from coral.native.calls import Await, Call, Say, Search, Submit
from coral.native.format import difference
from coral.native.search.bandit import draw, merge
from coral.native.situation import Event, Explored, Graded, Idle, Prompted, Situation, Trouble, Written

BORROW = 0.5  # how often an agent that is behind starts from the best attempt that a skill names
PATIENCE = 2  # attempts in a row with one family that gained nothing, before it rests for one


class SearchBrain:
    """Everything it remembers is in memory; what it draws depends on memory's own counters alone."""

    def reason(self, situation: Situation, event: Event) -> tuple[Call, ...]:
        match event:
            case Prompted(sections=sections):
                fresh = [section for section in sections if section.id not in situation.memory.answered]
                return tuple(call for section in fresh for call in answer(situation, section))
            case Idle():
                return (self._next(situation),)
            case Explored(trial=trial, texts=texts):
                return (Submit(trial=trial, texts=texts),)
            case Graded(trial=trial):
                if trial.number is None:
                    return ()
                came = difference(trial.before, trial.score) or trial.reason or "no start to compare with"
                return (Say(text=f"#{trial.number} {trial.verdict}, {came}: {trial.title}"),)
            case Trouble():
                return self._correct(situation, event)
            case Written():
                return ()

    def _next(self, situation: Situation) -> Call:
        """What is unfinished comes first; then a new episode."""
        memory, world = situation.memory, situation.world
        if memory.pending is not None:
            return Await(trial=memory.pending)
        if memory.work is not None:
            return Submit(trial=memory.work.trial, texts=memory.work.texts)
        random = Random(f"{memory.session}/{memory.episodes}")
        family = self._family(situation, random)
        start, why = self._start(situation, random)
        skills = ", ".join(lesson.mark for lesson in world.lessons)
        return Search(family=family, start=start, why=f"{why}; loaded {skills}" if skills else why)

    def _family(self, situation: Situation, random: Random) -> str:
        memory, world = situation.memory, situation.world
        steer = memory.steer
        names = [name for name in world.families if not (steer.episodes and name == steer.avoid)]
        if steer.episodes and steer.family in names:
            return steer.family
        if not memory.trials and "descent" in names:
            return "descent"
        last = [trial.family for trial in memory.trials[-PATIENCE:] if trial.verdict != "improved"]
        if len(last) == PATIENCE and len(set(last)) == 1 and len(names) > 1:
            names = [name for name in names if name != last[0]]
        shared = merge(lesson.credit for lesson in world.lessons)
        return draw(names or world.families, memory.credit, shared, random)

    def _start(self, situation: Situation, random: Random) -> tuple[int | None, str]:
        """The attempt to start from: as steered, or the own best, or sometimes the best that a skill names."""
        memory = situation.memory
        if memory.steer.episodes and memory.steer.start is not None:
            return memory.steer.start, "redirected to the best of the fleet"
        own = situation.own
        known = {entry.number: entry for entry in situation.board.best.values()}
        for lesson in situation.world.lessons:
            named = known.get(lesson.start) if lesson.start is not None else None
            ahead = named is not None and self._ahead(situation, named.score, own.score if own else None)
            if named is not None and ahead and random.random() < BORROW:
                return named.number, f"the skill names #{named.number}, which is ahead of mine"
        if own is not None:
            return own.number, "my best so far"
        return (0, "the seed") if "" in situation.board.best else (None, "the files as they are")

    def _ahead(self, situation: Situation, theirs: float | None, mine: float | None) -> bool:
        if theirs is None:
            return False
        return mine is None or situation.world.direction.better(theirs, mine)

    def _correct(self, situation: Situation, trouble: Trouble) -> tuple[Call, ...]:
        """Put right what a tool complained of: once more, another family, or say it and go on."""
        call = trouble.call
        if trouble.again:
            return (call,)
        said = Say(text=f"That did not work: {trouble.message}")
        if isinstance(call, Search) and (others := [n for n in situation.world.families if n != call.family]):
            other = Random(f"{situation.memory.session}/{situation.memory.episodes}/again").choice(others)
            return (said, Search(family=other, start=call.start, why=f"{call.family} did not work: {trouble.message}"))
        return (said,)
