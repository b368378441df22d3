"""The answer to `redirect`: say where the ceiling is, leave the family, go on from the best attempt that is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from coral.native.calls import Call, Remember, Say, Steering, WriteNote
from coral.native.format import difference, numbers, score
from coral.native.memory import Steer, Trial
from coral.native.search.bandit import Credit
from coral.native.search.families import FAMILIES
from coral.native.situation import Situation

EPISODES = 3  # a new family gets so many attempts before it is judged
LOOKED_BACK = 6


def redirect(situation: Situation) -> tuple[Call, ...]:
    """Steer the next episodes, and note why."""
    memory = situation.memory
    graded = [trial for trial in memory.trials if trial.number is not None][-LOOKED_BACK:]
    left = graded[-1].family if graded else ""
    lead = situation.leader
    start = lead.number if lead is not None else None
    family = choose(situation, left)
    diagnosis = _diagnosis(graded, left)
    where = f"#{start} ({score(lead.score)}, {lead.agent or 'the seed'})" if lead is not None else "the seed"
    plan = f"`{family}` instead of `{left}`, from {where}, for {EPISODES} attempts"
    wrong = f"I was wrong if none of these {EPISODES} ends above what `{left or 'before'}` reached."
    title = f"Ceiling of {left or 'the approach'}: {_ceiling(graded)}; going on with {family} from #{start}"
    body = "\n\n".join(
        (
            f"# {title}",
            f"**Ceiling.** {diagnosis}",
            _others(situation),
            f"**Change.** {plan}: it {FAMILIES[family].about}. {wrong}",
        )
    )
    attempts = tuple(trial.number for trial in graded if trial.number is not None)
    calls: list[Call] = [Steering(steer=Steer(start=start, avoid=left, family=family, episodes=EPISODES))]
    if attempts:
        name = f"{attempts[-1]:04d}-ceiling-of-{left}"
        calls.append(WriteNote(name=name, title=title, kind="note", attempts=attempts, body=body))
    calls.append(Remember(block="plan", text=plan))
    calls.append(Say(text=f"{diagnosis} {plan[:1].upper()}{plan[1:]}. {wrong}"))
    return tuple(calls)


def choose(situation: Situation, left: str) -> str:
    """Another family than the one that is left: the likeliest to pay, of those that were tried least lately."""
    recent = Counter(trial.family for trial in situation.memory.trials[-LOOKED_BACK:])
    paid = situation.memory.credit
    names = [name for name in situation.world.families if name != left] or list(situation.world.families)

    return min(names, key=lambda name: (recent[name], -paid.get(name, Credit()).rate(name)))


def _diagnosis(graded: Sequence[Trial], left: str) -> str:
    if not graded:
        return "I have no graded attempt to learn from yet."
    families = Counter(trial.family for trial in graded)
    used = ", ".join(f"`{name}` {count} times" if count > 1 else f"`{name}` once" for name, count in families.items())
    named = numbers([trial.number for trial in graded if trial.number is not None])
    moves, evaluations = sum(t.moves for t in graded), sum(t.evaluations for t in graded)
    effort = f" ({moves:,} moves, {evaluations:,} evaluations)" if evaluations else ""
    return (
        f"My last {len(graded)} attempts, {named}, used {used}{effort} and end near {_ceiling(graded)}. "
        f"What they have in common is the neighbourhood in which they search: "
        f"`{left}` reaches no better optimum from there."
    )


def _ceiling(graded: Sequence[Trial]) -> str:
    scored = [trial for trial in graded if trial.score is not None]
    best = [trial.before for trial in scored if trial.before is not None]
    return score(best[-1]) if best else "no score"


def _others(situation: Situation) -> str:
    own = situation.own
    lines = []
    for entry in situation.others[:6]:
        ahead = difference(own.score, entry.score) if own is not None else ""
        against = f" ({ahead} against my #{own.number})" if own is not None and ahead else ""
        lines.append(f"- #{entry.number} {entry.agent} {score(entry.score)}{against}: {entry.title}")
    return "**What others do.**\n\n" + "\n".join(lines) if lines else "**What others do.** Nobody else has a score yet."
