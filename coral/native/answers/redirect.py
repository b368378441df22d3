"""The answer to `redirect`: names the ceiling, leaves the family, and goes on from the best attempt of the fleet."""

from collections import Counter
from collections.abc import Sequence

from attempts.record import IMPROVED
from coral.native.calls import Remember, Say, WriteNote
from coral.native.format import attempt_list, score_text
from coral.native.memory import Redirection, Trial
from coral.native.search.choose_family import RECENT, choose_other_family
from coral.native.situation import Call, Situation

ENOUGH_TRIES = 2  # from one start, after which a family is a dead end there
EPISODES = 2  # attempts that a new family gets before it is judged


def redirect(situation: Situation) -> tuple[Call, ...]:
    """Redirect the next episodes, and note why."""
    graded = list(situation.memory.graded.values())[-RECENT:]
    left, best = graded[-1].family if graded else "", situation.fleet_best
    family = choose_other_family(situation, left)
    origin = (
        f"#{best.number} ({score_text(best.score)}, {best.agent or 'the seed'})" if best is not None else "the seed"
    )
    plan = f"`{family}` instead of `{left}`, from {origin}, for {EPISODES} attempts"
    wrong = f"I was wrong if none of these ends above what `{left or 'before'}` reached."
    until = situation.memory.episodes + EPISODES
    redirection = Redirection(start=best.number if best else None, family=family, until=until)
    return (
        Remember(block="plan", text=plan, redirection=redirection),
        *_dead_end(situation, graded, f"Now {plan}. {wrong}", family),
        Say(text=f"{_diagnosis(graded)} {plan[:1].upper()}{plan[1:]}. {wrong}"),
    )


def _dead_end(situation: Situation, graded: Sequence[Trial], plan: str, family: str) -> tuple[WriteNote, ...]:
    """Write a note that the last family reaches nothing better from its start; `coral eval` shows the note to an agent
    that tries this again. One attempt is not enough evidence for it. If another agent has written the same note, the
    attempts are added to that. `family`: the one that is taken up instead, which the note claims."""
    tried = [trial for trial in graded if (trial.family, trial.start) == (graded[-1].family, graded[-1].start)]
    best = situation.fleet_best.number if situation.fleet_best is not None else None
    # An attempt whose gain is within the noise improves nothing, and may still be what the fleet builds on.
    gained = any(trial.verdict in IMPROVED or trial.number == best for trial in tried)
    if gained or len(tried) < ENOUGH_TRIES or tried[-1].start is None:
        return ()
    left, start = tried[-1].family, tried[-1].start
    name = f"dead-end-{left}-from-{start}"
    earlier = [number for note in situation.notes if note.name == name for number in note.attempts]
    numbers = tuple(sorted({*earlier, *(trial.number or 0 for trial in tried)}))
    title = f"{left} from #{start} gains nothing: {attempt_list(numbers)}, {score_text(tried[-1].before)}"
    topics = (left, f"#{start}")
    return (
        WriteNote(name=name, title=title, kind="dead-end", attempts=numbers, body=plan, topics=topics, claims=family),
    )


def _diagnosis(graded: Sequence[Trial]) -> str:
    if not graded:
        return "I have no graded attempt to learn from yet."
    used = ", ".join(f"`{name}` {count}" for name, count in Counter(trial.family for trial in graded).items())
    ceiling = [trial.before for trial in graded if trial.before is not None]
    return (
        f"My last {len(graded)} attempts, {attempt_list([trial.number or 0 for trial in graded])} ({used}), end near "
        f"{score_text(ceiling[-1] if ceiling else None)}. What they have in common is the "
        f"neighbourhood in which they search: `{graded[-1].family}` reaches no better optimum from there."
    )
