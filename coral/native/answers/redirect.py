"""The answer to `redirect`: name the ceiling, leave the family, and go on from the best attempt of the fleet."""

from collections import Counter
from collections.abc import Sequence

from coral.native.format import attempt_list, difference, score_text
from coral.native.memory import Redirection, Trial
from coral.native.search.choose_family import RECENT, choose_other_family
from coral.native.search.families import FAMILIES
from coral.native.situation import Call, Redirect, Remember, Say, Situation, WriteNote

EPISODES = 3  # a new family gets so many attempts before it is judged


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
    title = f"Ceiling of {left or 'the approach'}: {_ceiling(graded)}; going on with {family} from #{start}"
    body = "\n\n".join(
        (
            f"# {title}",
            f"**Ceiling.** {diagnosis}",
            f"**What others do.**{_others(situation)}",
            f"**Change.** {plan}: it {FAMILIES[family].about}. {wrong}",
        )
    )
    attempts = tuple(trial.number for trial in graded if trial.number is not None)
    redirection = Redirection(start=start, avoid=left, family=family, episodes=EPISODES)
    calls: list[Call] = [Redirect(redirection=redirection)]
    if attempts:
        name = f"{attempts[-1]:04d}-ceiling-of-{left}"
        calls.append(WriteNote(name=name, title=title, kind="note", attempts=attempts, body=body, claims=family))
    calls.append(Remember(block="plan", text=plan))
    calls.append(Say(text=f"{diagnosis} {plan[:1].upper()}{plan[1:]}. {wrong}"))
    return tuple(calls)


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


def _others(situation: Situation) -> str:
    own = situation.own_best
    lines = []
    for attempt in situation.best_of_others[:6]:
        ahead = difference(own.score, attempt.score) if own is not None else ""
        against = f" ({ahead} against my #{own.number})" if own is not None and ahead else ""
        lines.append(f"- #{attempt.number} {attempt.agent} {score_text(attempt.score)}{against}: {attempt.title}")
    return "\n\n" + "\n".join(lines) if lines else " Nobody else has a score yet."
