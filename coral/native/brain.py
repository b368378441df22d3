"""The brains: policies from a situation and an event to calls. A brain is pure: it reads no file and performs no
action.

`search` needs no model: it searches over the numbers and choices of the editable files, and answers each heartbeat by
doing what it asks. The brain `llm` is in `llm/`: it asks a model, and has a loop, tools and a memory of its own.
"""

from random import Random
from typing import Protocol, assert_never

from coral.native.answers.answer import answer
from coral.native.calls import Say, Search, Submit
from coral.native.format import score_text
from coral.native.options import LLM, SEARCH
from coral.native.search.choose_family import choose_family, choose_start
from coral.native.search.hand_over import report
from coral.native.situation import (
    Call,
    CallDone,
    CallFailed,
    CandidateFound,
    Event,
    Idle,
    Prompted,
    ResultReceived,
    Situation,
)
from coral.own_code import find_own


class Brain(Protocol):
    """What decides the next calls. `searches`: whether the brain only searches, so that it can do nothing for files
    without numbers and choices."""

    searches: bool

    def reason(self, situation: Situation, event: Event) -> tuple[Call, ...]:
        """Return the calls to make after an event. A call that fails comes back as `CallFailed`, so that the brain can
        correct it."""
        ...


class SearchBrain:
    """The brain that needs no model. It keeps no state but the memory; its random draws depend on the session and the
    number of the episode alone."""

    searches = True

    def reason(self, situation: Situation, event: Event) -> tuple[Call, ...]:
        match event:
            case Prompted(section=section):
                return answer(situation, section)
            case Idle():
                return (*report(situation), _next_search(situation))
            case CandidateFound(candidate=candidate):
                return (Submit(candidate=candidate),)
            case ResultReceived(trial=trial):
                result = trial.reason or f"{score_text(trial.before)} -> {score_text(trial.score)}"
                return (Say(text=f"#{trial.number} {trial.verdict}, {result}: {trial.title}"),)
            case CallFailed():
                return _correct(situation, event)
            case CallDone():
                return ()
            case _:
                assert_never(event)


def _next_search(situation: Situation) -> Search:
    random = Random(f"{situation.memory.session}/{situation.memory.episodes}")
    family = choose_family(situation, random)
    start, why = choose_start(situation, random)
    if (skill := situation.skill) is not None:
        why += f"; loaded the skill by {skill.author}, up to #{skill.after}"
    return Search(family=family, start=start, why=why)


def _correct(situation: Situation, failed: CallFailed) -> tuple[Call, ...]:
    """Correct a call that failed: repeat it, search with another family, or report the failure and go on."""
    call, memory = failed.call, situation.memory
    if failed.transient:
        return (call,)
    complaint = Say(text=f"That did not work: {failed.message}")
    if isinstance(call, Search):
        others = [name for name in situation.families if name != call.family]
        if others:
            random = Random(f"{memory.session}/{memory.episodes}/again")
            other = random.choice(others)
            start, _ = choose_start(situation, random)  # from the failed one the tries may be over
            why = f"{call.family} did not work: {failed.message}"
            return (complaint, Search(family=other, start=start, why=why))
    return (complaint,)


def find_brain(name: str) -> type[Brain]:
    """Return the class of a brain that searches: ours, or one of a task's own, as `module:Class`. ValueError says why
    there is none."""
    if name == SEARCH:
        return SearchBrain
    if ":" not in name:
        raise ValueError(f"brain must be {SEARCH} or {LLM}, or module:Class of your own; got {name!r}")
    brain = find_own("brain", name)
    if not isinstance(brain, type) or not callable(getattr(brain, "reason", None)):
        raise ValueError(f"cannot use the brain {name!r}: it is no class with a method `reason`")
    return brain
