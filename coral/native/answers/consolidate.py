"""The answer to `consolidate`: a synthesis of what notes and attempts show, and a skill that searches can load.

What the attempts of all agents show about each family is read from their titles: native agents submit under titles
like `rows from #12: ...`, which name the family and the start; the records hold the result.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from attempts.failures import kind_of
from attempts.record import IMPROVED, Attempt, Direction, Verdict
from coral.native.calls import Remember, Say, WriteNote, WriteSkill
from coral.native.format import attempt_list, score_text
from coral.native.memory import KnownAttempts
from coral.native.search.bandit import is_win
from coral.native.search.families import FAMILIES, parse_title
from coral.native.shared_skills import WHERE_IT_PAYS, SearchSkill
from coral.native.situation import Call, Situation

ENOUGH_TRIES = 2  # of a family without a gain, from which the synthesis says so
COMMON_FAILURE = 0.2  # share of the latest attempts that fail for one reason, from which it is a conclusion
SYNTHESIS = "synthesis"  # the name of the one note, which each synthesis rewrites
NOTHING_PROVEN = "- Nothing is proven yet: no family has improved a score twice or failed twice."
NAMED = 4  # attempts that a sentence names
LATELY = 3  # attempts in a row without a gain, after which earlier gains count little
CLOSE = 1e-6  # relative: scores this close end at the same optimum


@dataclass(slots=True)
class FamilyEvidence:
    """The attempts of one family, in the order of their numbers; `wins`: those that gained over their start."""

    tries: list[Attempt] = field(default_factory=list)
    wins: list[Attempt] = field(default_factory=list)

    @property
    def pays(self) -> bool:
        return any(attempt in self.wins for attempt in self.tries[-LATELY:])

    @property
    def share(self) -> str:
        last = attempt_list([attempt.number for attempt in (self.wins if self.pays else self.tries)[-2:]])
        return f"{len(self.wins)} of {len(self.tries)}, {'last' if self.pays else 'tried last in'} {last}"


Evidence = dict[str, FamilyEvidence]


def evidence_by_family(known: KnownAttempts, direction: Direction) -> Evidence:
    """Collect the evidence for each family, the one that gained most often first.

    Attempts that start at the seed are left out: nearly any change gains there, so they do not show what helps later.
    """
    out = defaultdict[str, FamilyEvidence](FamilyEvidence)
    for attempt in known.all:
        family, number = parse_title(attempt.title)
        start = known.find(number)
        if not family or attempt.verdict == Verdict.VOID or number == known.seed:
            continue
        out[family].tries.append(attempt)
        # An agent's best also improves when it starts from another's better attempt and ends where it began.
        gained = start is None or is_win(start.score, attempt.score, direction)
        if attempt.verdict in IMPROVED and gained:
            out[family].wins.append(attempt)
    return dict(sorted(out.items(), key=lambda item: (-len(item[1].wins), -len(item[1].tries), item[0])))


def consolidate(situation: Situation) -> tuple[Call, ...]:
    """Write a synthesis, and a skill if any family has gained."""
    known, best = situation.known, situation.fleet_best
    evidence = evidence_by_family(known, situation.direction)
    lines = [*_failures(known), *_best(situation), *_families(evidence)]
    conclusions, plan = "\n".join(lines) or NOTHING_PROVEN, _next(situation, evidence)
    untried = ", ".join(f"`{name}`" for name in situation.families if name not in evidence)
    parts = {
        "Conclusions": conclusions,
        "Contradictions": _contradictions(evidence),
        "Gaps": f"- Beyond the seed, nobody has tried {untried}." if untried else "",
        "Next": plan,
        "Notes of others": _notes_read(situation),
    }
    title = f"Synthesis up to #{max(0, known.next - 1)}"
    title += f": {score_text(best.score)} (#{best.number})" if best is not None else ""
    body = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in parts.items() if text)
    numbers = tuple(attempt.number for attempt in known.recent)
    note = WriteNote(name=SYNTHESIS, title=title, kind="synthesis", attempts=numbers, body=body)
    skills = _skill(situation, evidence)
    written = f"and the skill `{WHERE_IT_PAYS}`" if skills else "and no skill: nothing is proven yet"
    words = Say(text=f"{title}. I have written the synthesis {written}. {conclusions}")
    return (note, *skills, Remember(block="plan", text=plan), words)


def _failures(known: KnownAttempts) -> list[str]:
    """Say for which reasons more than a fifth of the latest attempts fail: they cost more than any family can gain."""
    groups: dict[str, list[Attempt]] = {}
    for attempt in known.recent:
        if attempt.verdict == Verdict.FAILED:
            groups.setdefault(kind_of(attempt.reason), []).append(attempt)
    return [
        f"- {len(group)} of the last {len(known.recent)} attempts failed for one reason: "
        f"{group[-1].reason or 'unknown'} ({_last(group)})."
        for group in sorted(groups.values(), key=len, reverse=True)
        if len(group) > COMMON_FAILURE * len(known.recent)
    ]


def _last(group: list[Attempt]) -> str:
    """Name the last attempts of a group; say that they are the last if there are more."""
    named = attempt_list([attempt.number for attempt in group[-NAMED:]])
    return f"the last: {named}" if len(group) > NAMED else named


def _best(situation: Situation) -> list[str]:
    """Say what the best attempt changes, what it shows of the problem, and what was tried since without a gain."""
    best, seed = situation.fleet_best, situation.known.best.get("")
    if best is None or best.score is None or not best.agent:
        return []
    lines: list[str] = []
    level = best.score
    if seed is not None and seed.score is not None and situation.change_of_best:
        gained = f"#{seed.number} to #{best.number}, {level - seed.score:+.6g}"
        lines.append(f"- What gains: {gained}, by these: {situation.change_of_best}.")
    lines += [f"- Around #{best.number}, {text}." for text in situation.findings]
    recent = situation.known.recent
    since = [attempt for attempt in recent if attempt.number > best.number]
    if len(since) >= LATELY:
        tried = Counter(family for attempt in since if (family := parse_title(attempt.title)[0]))
        by = ", ".join(f"`{family}` {count}" for family, count in tried.most_common())
        near = [a.agent for a in recent if a.score is not None and abs(a.score - level) <= CLOSE * max(1.0, abs(level))]
        ends = f"; {len(near)} attempts of {len(set(near))} agents end near {score_text(level)}"
        ceiling = f"{ends}: a ceiling of these families, or the optimum" if len(set(near)) > 1 else ""
        none_better = f"none of the {len(since)} attempts since #{best.number} is better"
        lines.append(f"- What limits the score: {none_better} ({by}){ceiling}.")
    return lines


def _families(evidence: Evidence) -> list[str]:
    """Say in one line which families gain, and in another which do not."""
    paying = [f"`{family}` ({shown.share})" for family, shown in evidence.items() if shown.pays]
    tried = {family: shown for family, shown in evidence.items() if len(shown.tries) >= ENOUGH_TRIES}
    fruitless = [f"`{family}` ({shown.share})" for family, shown in tried.items() if not shown.pays]
    lines = [f"- Beyond the seed, these gain over their start: {', '.join(paying)}."] if paying else []
    return [*lines, f"- These do not, or no more: {', '.join(fruitless)}."] if fruitless else lines


def _contradictions(evidence: Evidence) -> str:
    lines = []
    for family, shown in evidence.items():
        winners, tried = {attempt.agent for attempt in shown.wins}, Counter(attempt.agent for attempt in shown.tries)
        losers = sorted(agent for agent in tried if tried[agent] >= ENOUGH_TRIES and agent not in winners)
        if winners and losers:
            decides = f"{losers[0]} using it from the best start of {min(winners)} would decide whether it is the start"
            gained = f"`{family}` gained for {', '.join(sorted(winners))} but never for {', '.join(losers)}"
            lines.append(f"- {gained}: {decides}.")
    return "\n".join(lines)


def _next(situation: Situation, evidence: Evidence) -> str:
    """Propose two ideas: the family that gains most often, and the one that was tried least."""
    best = situation.fleet_best
    start = f"#{best.number}" if best is not None else "the seed"
    paying = [family for family, shown in evidence.items() if shown.pays][:1]
    ideas = [f"`{family}` from {start}: what pays, from the best there is." for family in paying]
    rest = [name for name in situation.families if name not in paying]
    rest.sort(key=lambda name: len(evidence[name].tries) if name in evidence else 0)
    ideas += [f"`{name}` from {start}: tried least." for name in rest]
    return "\n".join(f"{number}. {idea}" for number, idea in enumerate(ideas[:2], 1))


def _notes_read(situation: Situation) -> str:
    """List the latest notes of others that this brain draws no conclusions from, but those of other native agents."""
    own = (situation.agent, "")
    others = (note for note in situation.notes if note.author not in own and not note.is_earlier)
    notes = [note for note in others if not note.is_synthesis and note.title.partition(" ")[0] not in FAMILIES]
    return "\n".join(f"- {note.title} ({note.author})" for note in notes[:LATELY])


def _skill(situation: Situation, evidence: Evidence) -> tuple[WriteSkill, ...]:
    """Return the skill that says where the search pays; none if no family has gained."""
    best, gained = situation.fleet_best, [family for family, shown in evidence.items() if shown.wins]
    proven = sorted(gained, key=lambda family: not evidence[family].pays)
    if best is None or not proven:
        return ()
    counts = {name: (float(len(shown.tries)), float(len(shown.wins))) for name, shown in evidence.items()}
    skill = SearchSkill(situation.agent, situation.known.next - 1, counts)
    front = skill.front(f"Where search has paid: from #{best.number}, `{proven[0]}`. Load it before you choose.")
    body = (
        f"# Where the search pays\n\nPut the files on #{best.number}: `coral checkout {best.number}`. "
        f"Then `{proven[0]}`: it {FAMILIES[proven[0]].about}.\n\n" + "\n".join(_families(evidence))
    )
    return (WriteSkill(name=WHERE_IT_PAYS, front=front, body=body),)
