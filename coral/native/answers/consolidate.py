"""The answer to `consolidate`: a synthesis of what notes and attempts show, and a skill that searches can load.

What the attempts of all agents show about each family is read from their titles: native agents submit under titles
like `rows from #12: ...`, which name the family and the start; the records hold the result.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

from attempts.failures import kind_of
from attempts.record import IMPROVED, Direction, Verdict
from coral.native.answers.skill import NAME, front_matter
from coral.native.format import attempt_list, score_text
from coral.native.memory import CLOSE, KnownAttempt
from coral.native.search.bandit import FamilyStats, gain, is_win
from coral.native.search.families import FAMILIES, parse_title
from coral.native.situation import Call, Remember, Say, Situation, WriteNote, WriteSkill

ENOUGH_TRIES = 2  # of a family without a gain, from which the synthesis says so
COMMON_FAILURE = 0.2  # share of the latest attempts that fail for one reason, from which it is a conclusion
SYNTHESIS = "synthesis"  # the name of the one note, which each synthesis rewrites
NOTHING_PROVEN = "- Nothing is proven yet: no family has improved a score twice or failed twice."
IDEAS = 2
LATELY = 3  # attempts of a family in a row without a gain, after which its earlier gains count little


@dataclass(slots=True)
class FamilyEvidence:
    """The attempts of one family, in the order of their numbers; `wins`: those that gained, and how much.

    Attempts that start at the seed are in `from_seed` alone: nearly any change gains there, so they do not show what
    helps later.
    """

    tries: list[KnownAttempt] = field(default_factory=list)
    wins: list[tuple[KnownAttempt, float]] = field(default_factory=list)
    from_seed: list[KnownAttempt] = field(default_factory=list)

    @property
    def all(self) -> list[KnownAttempt]:
        return [*self.from_seed, *self.tries]

    @property
    def since(self) -> int:
        """The number of attempts after the family's last gain; of all attempts if it has none."""
        last = max((attempt.number for attempt, _ in self.wins), default=-1)
        return sum(attempt.number > last for attempt in self.tries)

    @property
    def pays(self) -> bool:
        return bool(self.wins) and self.since < LATELY

    @property
    def largest_win(self) -> tuple[KnownAttempt, float] | None:
        """The attempt that gained most, and how much; None if none gained, or if the gains are not known."""
        attempt, gained = max(self.wins, key=lambda win: win[1], default=(None, 0.0))
        return (attempt, gained) if attempt is not None and gained else None

    def stats(self) -> FamilyStats:
        return FamilyStats(
            float(len(self.tries)), float(len(self.wins)), max((won for _, won in self.wins), default=0.0)
        )


Evidence = dict[str, FamilyEvidence]


def evidence_by_family(attempts: Iterable[KnownAttempt], direction: Direction) -> Evidence:
    """Collect the evidence for each family that was tried; attempts whose title names no family are left out."""
    known = {attempt.number: attempt for attempt in attempts}
    out: Evidence = {}
    for _, attempt in sorted(known.items()):
        family, number = parse_title(attempt.title)
        if not family or attempt.verdict == Verdict.VOID:
            continue
        evidence, start = out.setdefault(family, FamilyEvidence()), known.get(number)
        if start is not None and not start.agent:
            evidence.from_seed.append(attempt)
            continue
        evidence.tries.append(attempt)
        before = start.score if start else None
        gained = max(0.0, gain(before, attempt.score, direction))
        # An agent's best also improves when it starts from another's better attempt and ends where it began.
        if attempt.verdict in IMPROVED and (before is None or is_win(gained, before)):
            evidence.wins.append((attempt, gained))
    return dict(sorted(out.items(), key=lambda item: (-len(item[1].wins), -len(item[1].tries), item[0])))


def table(evidence: Evidence) -> str:
    lines = ["| family | attempts | improved | largest gain | by |", "|---|---:|---:|---:|---|"]
    for family, shown in evidence.items():
        if not shown.tries:
            continue
        largest = shown.largest_win
        gained, by = (f"{largest[1]:.3g}", f"#{largest[0].number} ({largest[0].agent})") if largest else ("", "")
        lines.append(f"| {family} | {len(shown.tries)} | {len(shown.wins)} | {gained} | {by} |")
    return "\n".join(lines)


def consolidate(situation: Situation) -> tuple[Call, ...]:
    """Write a synthesis, and a skill if any family has gained."""
    known, direction = situation.known, situation.observation.direction
    best = known.leader(direction)
    evidence = evidence_by_family([*known.best.values(), *known.recent], direction)
    rests_on = sorted({attempt.number for shown in evidence.values() for attempt in shown.all})
    title = f"Synthesis after {known.count} attempts"
    if best is not None and best.score is not None:
        title += f": {score_text(best.score)} (#{best.number})"
    failures = _failures(known.recent)
    findings = [f"- Around #{best.number}, {text}." for text in situation.observation.findings if best is not None]
    conclusions = "\n".join((*failures, *_best(situation), *findings, *_conclusions(evidence, direction)))
    plan = _next(situation, evidence)
    parts = {
        "Conclusions": conclusions or NOTHING_PROVEN,
        "Contradictions": _contradictions(evidence),
        "Gaps": _gaps(evidence),
        "Next": plan,
        "Notes of others": _notes_read(situation),
    }
    sections = [f"## {heading}\n\n{text}" for heading, text in parts.items() if text]
    body = "\n\n".join((f"# {title}", _standing(situation), *sections))
    calls: list[Call] = [WriteNote(name=SYNTHESIS, title=title, kind="synthesis", attempts=tuple(rests_on), body=body)]
    proven = any(shown.wins for shown in evidence.values())
    if proven:
        calls.append(_skill(situation, evidence))
    calls.append(Remember(block="plan", text=plan))
    written = f"and the skill `{NAME}`" if proven else "and no skill: nothing is proven yet"
    calls.append(Say(text=f"{title}. I have written the synthesis {written}. {conclusions or NOTHING_PROVEN}"))
    return tuple(calls)


def _standing(situation: Situation) -> str:
    best, seed = situation.known.leader(situation.observation.direction), situation.known.best.get("")
    if best is None:
        return "Nobody has a score yet."
    text = f"In the lead, proven or not: **#{best.number}, {score_text(best.score)}**, by {best.agent or 'the seed'}"
    if seed is not None and seed.number != best.number:
        text += f"; the seed scores {score_text(seed.score)}"
    return f"{text}."


def _failures(attempts: Sequence[KnownAttempt]) -> list[str]:
    """Return the reasons for which more than a fifth of the latest attempts fail: they cost more than any family can
    gain."""
    groups: dict[str, list[KnownAttempt]] = {}
    for attempt in attempts:
        if attempt.verdict == Verdict.FAILED:
            groups.setdefault(kind_of(attempt.reason), []).append(attempt)
    frequent = [group for group in groups.values() if len(group) > COMMON_FAILURE * len(attempts)]
    return [
        f"- {len(group)} of the last {len(attempts)} attempts failed for one reason: {group[-1].reason or 'unknown'} "
        f"({attempt_list([attempt.number for attempt in group][-4:])})."
        for group in sorted(frequent, key=len, reverse=True)
    ]


def _conclusions(evidence: Evidence, direction: Direction) -> list[str]:
    """Say in one line which families gain, in another which do not, and whether there is a plateau."""
    paying, fruitless = [], []
    for family, shown in evidence.items():
        if shown.pays:
            won = attempt_list(sorted(attempt.number for attempt, _ in shown.wins)[-2:])
            paying.append(f"`{family}` ({len(shown.wins)} of {len(shown.tries)}, last {won})")
        elif len(shown.tries) >= ENOUGH_TRIES:
            tried = attempt_list(sorted(attempt.number for attempt in shown.tries)[-2:])
            fruitless.append(f"`{family}` ({len(shown.wins)} of {len(shown.tries)}, tried last in {tried})")
    lines = [f"- Beyond the seed, these gain over their start: {', '.join(paying)}."] if paying else []
    lines += [f"- These do not, or no more: {', '.join(fruitless)}."] if fruitless else []
    plateau = _plateau(evidence, direction)
    return [*lines, plateau] if plateau else lines


def _best(situation: Situation) -> list[str]:
    """Say what the best attempt changes, and which families were tried since without a better score."""
    best, seed = situation.known.leader(situation.observation.direction), situation.known.best.get("")
    if best is None or best.score is None or not best.agent:
        return []
    lines = []
    if seed is not None and seed.score is not None and situation.observation.change_of_best:
        gained = f"#{seed.number} to #{best.number}, {best.score - seed.score:+.6g}"
        lines.append(f"- What gains: {gained}, by these: {situation.observation.change_of_best}.")
    since = [attempt for attempt in situation.known.recent if attempt.number > best.number]
    if len(since) >= LATELY:
        tried = Counter(family for attempt in since if (family := parse_title(attempt.title)[0]))
        by = ", ".join(f"`{family}` {count}" for family, count in tried.most_common())
        lines.append(
            f"- What limits the score: none of the {len(since)} attempts since #{best.number} is better ({by}); "
            f"they end near {score_text(best.score)}."
        )
    return lines


def _plateau(evidence: Evidence, direction: Direction) -> str:
    """Say if attempts of several agents end at the best score: that is a ceiling of these families, or the optimum."""
    scored = [
        (attempt.score, attempt) for shown in evidence.values() for attempt in shown.all if attempt.score is not None
    ]
    if not scored:
        return ""
    scores = [score for score, _ in scored]
    top = max(scores) if direction is Direction.MAXIMIZE else min(scores)
    close = [attempt for score, attempt in scored if abs(score - top) <= CLOSE * max(1.0, abs(top))]
    authors = {attempt.agent for attempt in close}
    if len(close) < 3 or len(authors) < 2:
        return ""
    numbers = attempt_list(sorted(attempt.number for attempt in close)[:6])
    where = f"{len(close)} attempts of {len(authors)} agents ended at {score_text(top, 9)} ({numbers})"
    return f"- {where}: a ceiling of these families, or the optimum."


def _contradictions(evidence: Evidence) -> str:
    lines = []
    for family, shown in evidence.items():
        won = Counter(attempt.agent for attempt, _ in shown.wins)
        tried = Counter(attempt.agent for attempt in shown.tries)
        losers = sorted(agent for agent in tried if tried[agent] >= ENOUGH_TRIES and not won[agent])
        if won and losers:
            winners = ", ".join(sorted(won))
            decides = f"{losers[0]} using it from the best start of {winners}"
            lines.append(
                f"- `{family}` gained for {winners} but never for {', '.join(losers)}. "
                f"What would decide whether it is the start: {decides}."
            )
    return "\n".join(lines)


def _gaps(evidence: Evidence) -> str:
    tries = [attempt for shown in evidence.values() for attempt in shown.all]
    failed = [attempt for attempt in tries if attempt.verdict == Verdict.FAILED]
    if not failed:
        return ""
    numbers = attempt_list([attempt.number for attempt in failed][-4:])
    return f"- Not understood: {numbers} failed ({failed[-1].reason or 'no reason'})."


def _next(situation: Situation, evidence: Evidence) -> str:
    """Propose two ideas: the family that gains, and a cross of the two best or the family that was tried least."""
    best, families = situation.known.leader(situation.observation.direction), situation.observation.families
    start = f"#{best.number}" if best is not None else "the seed"
    proven = next((family for family, shown in evidence.items() if shown.pays), None)
    untried = [family for family in families if family not in evidence]
    rarest_first = sorted(families, key=lambda family: len(evidence[family].all) if family in evidence else 0)
    ideas = []
    if proven:
        ideas.append(f"`{proven}` from {start}: what pays, from the best there is.")
    ranked = situation.known.best_of_others("", situation.observation.direction)
    rivals = [attempt for attempt in ranked if best is not None and _are_apart(attempt, best)]
    crossed = evidence.get("cross")
    if rivals and (crossed is None or crossed.pays or len(crossed.tries) < ENOUGH_TRIES):
        rival = f"#{rivals[0].number} ({score_text(rivals[0].score)})"
        ideas.append(f"`cross` of {start} with {rival}: they were found apart.")
    rest = (family for family in [*untried, *rarest_first] if family not in (proven, "cross"))
    for family in islice(rest, IDEAS - len(ideas)):
        ideas.append(f"`{family}` from {start}: {'nobody has tried it' if family in untried else 'tried least'}.")
    return "\n".join(f"{number}. {idea}" for number, idea in enumerate(ideas, 1))


def _are_apart(one: KnownAttempt, other: KnownAttempt) -> bool:
    """Return whether these are two attempts of which, by their titles, neither began at the other."""
    starts = {parse_title(one.title)[1], parse_title(other.title)[1]}
    return one.number != other.number and not starts & {one.number, other.number}


def _notes_read(situation: Situation) -> str:
    """List the titles of the latest notes of others that this brain draws no conclusions from; empty if there are
    none."""
    own = (situation.observation.agent, "")
    others = (note for note in situation.observation.notes if note.author not in own and not note.is_earlier)
    unread = (note for note in others if not note.is_synthesis)
    notes = [note for note in unread if note.title.partition(" ")[0] not in FAMILIES]  # what native agents write
    return "\n".join(f"- {note.title} ({note.author})" for note in notes[:LATELY])


def _skill(situation: Situation, evidence: Evidence) -> WriteSkill:
    count = situation.known.count
    stats = {family: shown.stats() for family, shown in evidence.items()}
    best_family = next(family for family, shown in evidence.items() if shown.wins)
    best = situation.fleet_best
    start = best.number if best is not None else None
    description = (
        f"Where search has paid after {count} attempts: from #{start if start is not None else 0}, `{best_family}`. "
        "Load it before you choose."
    )
    proof = attempt_list(sorted(attempt.number for shown in evidence.values() for attempt, _ in shown.wins)[-10:])
    first = f"Put the files on #{start}: `coral checkout {start}`." if start is not None else "Start from the seed."
    body = "\n\n".join(
        (
            "# Where the search pays",
            f"{first} Then `{best_family}`: it {FAMILIES[best_family].about}. Proof: {proof}.",
            table(evidence),
        )
    )
    front = front_matter(situation.observation.agent, description, stats, start, count)
    return WriteSkill(name=NAME, front=front, body=body)
