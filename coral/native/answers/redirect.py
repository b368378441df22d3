"""The answer to `redirect`: names the ceiling, leaves the family, and goes on from the best attempt of the fleet."""

from collections import Counter
from collections.abc import Sequence

from attempts.record import IMPROVED
from coral.native.format import attempt_list, score_text
from coral.native.memory import Redirection, Trial
from coral.native.search.choose_family import RECENT, choose_other_family
from coral.native.situation import Call, Redirect, Remember, Say, Situation, WriteNote

ENOUGH_TRIES = 2  # from one start, after which a family is a dead end there
EPISODES = 3  # attempts that a new family gets before it is judged


def redirect(situation: Situation) -> tuple[Call, ...]:
    """Redirect the next episodes, and note why."""
    graded = [trial for trial in situation.memory.trials if trial.number is not None][-RECENT:]
    left = graded[-1].family if graded else ""
    best = situation.fleet_best
    start = best.number if best is not None else None
    family = choose_other_family(situation, left)
    diagnosis = _diagnosis(graded, left)
    origin = f"#{start} ({score_text(best.score)}, {best.agent or 'the seed'})" if best is not None else "the seed"
    plan = f"`{family}` instead of `{left}`, from {origin}, for {EPISODES} attempts"
    wrong = f"I was wrong if none of these {EPISODES} ends above what `{left or 'before'}` reached."
    redirection = Redirection(start=start, avoid=left, family=family, episodes=EPISODES)
    calls: list[Call] = [Redirect(redirection=redirection), *_dead_end(situation, graded, f"{plan}. {wrong}", family)]
    calls.append(Remember(block="plan", text=plan))
    calls.append(Say(text=f"{diagnosis} {plan[:1].upper()}{plan[1:]}. {wrong}"))
    return tuple(calls)


def _dead_end(situation: Situation, graded: Sequence[Trial], plan: str, family: str) -> list[WriteNote]:
    """Write a note that the last family reaches nothing better from its start; `coral eval` shows the note to an agent
    that tries this again. One attempt is not enough evidence for it. If another agent has written the same note, the
    attempts are added to that. `family`: the one that is taken up instead, which the note claims."""
    if not graded:
        return []
    left, start = graded[-1].family, graded[-1].start
    tried = [trial for trial in graded if (trial.family, trial.start) == (left, start) and trial.number is not None]
    if start is None or len(tried) < ENOUGH_TRIES or any(trial.verdict in IMPROVED for trial in tried):
        return []
    name = f"dead-end-{left}-from-{start}"
    earlier = [note.attempts for note in situation.observation.notes if note.name == name]
    own = [trial.number for trial in tried if trial.number is not None]
    numbers = tuple(sorted({*own, *(number for attempts in earlier for number in attempts)}))
    title = f"{left} from #{start} gains nothing: {attempt_list(list(numbers))}, {score_text(tried[-1].before)}"
    evaluations = sum(trial.evaluations for trial in tried)
    effort = f"{sum(trial.moves for trial in tried):,} moves, {evaluations:,} evaluations of the check. "
    body = f"{effort if evaluations else ''}Now {plan}"
    topics = (left, f"#{start}")
    note = WriteNote(name=name, title=title, kind="dead-end", attempts=numbers, body=body, topics=topics, claims=family)
    return [note]


def _diagnosis(graded: Sequence[Trial], left: str) -> str:
    if not graded:
        return "I have no graded attempt to learn from yet."
    families = Counter(trial.family for trial in graded)
    used = ", ".join(f"`{name}` {count} times" if count > 1 else f"`{name}` once" for name, count in families.items())
    numbers = attempt_list([trial.number for trial in graded if trial.number is not None])
    moves, evaluations = sum(trial.moves for trial in graded), sum(trial.evaluations for trial in graded)
    effort = f" ({moves:,} moves, {evaluations:,} evaluations)" if evaluations else ""
    return (
        f"My last {len(graded)} attempts, {numbers}, used {used}{effort} and end near {_ceiling(graded)}. "
        f"What they have in common is the neighbourhood in which they search: "
        f"`{left}` reaches no better optimum from there."
    )


def _ceiling(graded: Sequence[Trial]) -> str:
    befores = [trial.before for trial in graded if trial.score is not None and trial.before is not None]
    return score_text(befores[-1]) if befores else "no score"
