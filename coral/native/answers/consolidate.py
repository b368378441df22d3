"""The answer to `consolidate`: a synthesis of what notes and attempts show, a skill that searches can load."""

from __future__ import annotations

from collections import Counter
from itertools import islice

from attempts.record import Direction, Verdict
from coral.native.answers.evidence import Evidence, by_family, table
from coral.native.answers.skill import NAME, head
from coral.native.calls import Call, Remember, Say, WriteNote, WriteSkill
from coral.native.format import numbers, score
from coral.native.known_attempts import Entry
from coral.native.search.families import FAMILIES
from coral.native.situation import Situation

FAIR = 2  # tries that make a family's failure worth a sentence
CLOSE = 1e-6  # relative: scores this close to the best stand on one plateau


def consolidate(situation: Situation) -> tuple[Call, ...]:
    """A synthesis; a skill where something is proven."""
    board, direction = situation.board, situation.world.direction
    evidence = by_family([*board.best.values(), *board.recent], direction)
    lead = situation.leader
    rests_on = sorted({entry.number for item in evidence.values() for entry in item.tries})
    title = f"Synthesis after {board.count} attempts"
    if lead is not None and lead.score is not None:
        title += f": {score(lead.score)} (#{lead.number})"
    body = "\n\n".join(
        (
            f"# {title}",
            _standing(situation, lead),
            "## Conclusions\n\n" + _conclusions(evidence, direction),
            "## Evidence\n\n" + (table(evidence) if evidence else "No attempt names its family."),
            "## Contradictions\n\n" + _contradictions(evidence),
            "## Gaps\n\n" + _gaps(situation, evidence),
            "## Next\n\n" + _next(situation, evidence, lead),
            "## Read\n\n" + _read(situation),
        )
    )
    calls: list[Call] = [
        WriteNote(
            name=f"synthesis-after-{board.count}", title=title, kind="synthesis", attempts=tuple(rests_on), body=body
        )
    ]
    proven = [item for item in evidence.values() if item.wins]
    if proven:
        calls.append(_skill(situation, evidence, lead))
    calls.append(Remember(block="plan", text=_next(situation, evidence, lead)))
    told = f"and the skill `{NAME}`" if proven else "and no skill: nothing is proven yet"
    calls.append(Say(text=f"{title}. I have written the synthesis {told}. {_conclusions(evidence, direction)}"))
    return tuple(calls)


def _standing(situation: Situation, lead: Entry | None) -> str:
    board = situation.board
    seed = board.best.get("")
    if lead is None:
        return "Nobody has a score yet."
    text = f"Best of the fleet: **#{lead.number}, {score(lead.score)}**, by {lead.agent or 'the seed'}"
    if seed is not None and seed.number != lead.number:
        text += f"; the seed (#0) scores {score(seed.score)}"
    ranks = ", ".join(f"{entry.agent} {score(entry.score)} (#{entry.number})" for entry in _ranked(situation))
    return f"{text}. By agent: {ranks}." if ranks else f"{text}."


def _ranked(situation: Situation) -> list[Entry]:
    return situation.board.others("", situation.world.direction)


def _conclusions(evidence: dict[str, Evidence], direction: Direction) -> str:
    lines = []
    for name, item in evidence.items():
        if item.wins:
            best = item.best
            largest = f", the largest by {best[1]:.3g} (#{best[0].number})" if best and best[1] else ""
            sure = "well supported" if len(item.wins) >= FAIR else "one case only"
            won = numbers(sorted(entry.number for entry, _ in item.wins)[-6:])
            lines.append(f"- `{name}` pays: {len(item.wins)} of {len(item.tries)} improved ({won}){largest}; {sure}.")
        elif len(item.tries) >= FAIR:
            tried = numbers(sorted(entry.number for entry in item.tries)[-6:])
            lines.append(f"- `{name}` has not paid in {len(item.tries)} attempts ({tried}).")
    plateau = _plateau(evidence, direction)
    if plateau:
        lines.append(plateau)
    return "\n".join(lines) or "- Nothing is proven yet: no family has improved a score twice or failed twice."


def _plateau(evidence: dict[str, Evidence], direction: Direction) -> str:
    """A best score that several attempts reached independently is a ceiling of these families, or the optimum."""
    scored = [entry for item in evidence.values() for entry in item.tries if entry.score is not None]
    values = [entry.score for entry in scored if entry.score is not None]
    if not values:
        return ""
    top = max(values) if direction is Direction.MAXIMIZE else min(values)
    close = [e for e in scored if e.score is not None and abs(e.score - top) <= CLOSE * max(1.0, abs(top))]
    authors = {entry.agent for entry in close}
    if len(close) < 3 or len(authors) < 2:
        return ""
    found = numbers(sorted(entry.number for entry in close)[:6])
    where = f"{len(close)} attempts of {len(authors)} agents ended at {score(top, 9)} ({found})"
    return f"- {where}: a ceiling of these families, or the optimum."


def _contradictions(evidence: dict[str, Evidence]) -> str:
    lines = []
    for name, item in evidence.items():
        won = Counter(entry.agent for entry, _ in item.wins)
        tried = Counter(entry.agent for entry in item.tries)
        losers = sorted(agent for agent in tried if tried[agent] >= FAIR and not won[agent])
        if won and losers:
            winners = ", ".join(sorted(won))
            decides = f"{losers[0]} using it from the best start of {winners}"
            lines.append(
                f"- `{name}` gained for {winners} but never for {', '.join(losers)}. "
                f"What would decide whether it is the start: {decides}."
            )
    return "\n".join(lines) or "None: what paid for one agent has not failed for another that tried it twice."


def _gaps(situation: Situation, evidence: dict[str, Evidence]) -> str:
    untried = [name for name in situation.world.families if name not in evidence]
    lines = [f"- Nobody has tried `{name}`, which {FAMILIES[name].about}." for name in untried]
    once = [name for name, item in evidence.items() if len(item.tries) == 1]
    if once:
        lines.append(f"- Tried once only: {', '.join(f'`{name}`' for name in once)}.")
    failed = [e for item in evidence.values() for e in item.tries if e.verdict == Verdict.FAILED]
    if failed:
        lines.append(
            f"- Not understood: {numbers([e.number for e in failed][-4:])} failed ({failed[-1].reason or 'no reason'})."
        )
    return "\n".join(lines) or "Every family that suits this task has been tried more than once."


def _next(situation: Situation, evidence: dict[str, Evidence], lead: Entry | None) -> str:
    start = f"#{lead.number}" if lead is not None else "the seed"
    proven = next((name for name, item in evidence.items() if item.wins), None)
    untried = [name for name in situation.world.families if name not in evidence]
    rare = sorted(situation.world.families, key=lambda name: len(evidence[name].tries) if name in evidence else 0)
    ideas = []
    if proven:
        ideas.append(f"`{proven}` from {start}: what pays, from the best there is.")
    rivals = [entry for entry in _ranked(situation) if lead is not None and entry.number != lead.number]
    if rivals:
        ideas.append(f"`cross` of {start} with #{rivals[0].number} ({score(rivals[0].score)}): they were found apart.")
    for name in islice((n for n in [*untried, *rare] if n not in (proven, "cross")), 3 - len(ideas)):
        ideas.append(f"`{name}` from {start}: the least explored of what suits this task.")
    return "\n".join(f"{k}. {idea}" for k, idea in enumerate(ideas[:3], 1))


def _read(situation: Situation) -> str:
    notes = [note for note in situation.world.notes if note.kind != "synthesis"]
    if not notes:
        return "No notes yet: the conclusions rest on the attempts alone."
    authors = Counter(note.author or "unknown" for note in notes)
    latest = "\n".join(f"- {note.title} ({note.author or 'unknown'})" for note in notes[:8])
    who = ", ".join(f"{name} {count}" for name, count in sorted(authors.items()))
    return f"{len(notes)} notes ({who}). The newest:\n\n{latest}"


def _skill(situation: Situation, evidence: dict[str, Evidence], lead: Entry | None) -> WriteSkill:
    credit = {name: item.credit() for name, item in evidence.items()}
    best = next(name for name, item in evidence.items() if item.wins)
    start = lead.number if lead is not None else None
    description = (
        f"Where numeric search has paid on this task after {situation.board.count} attempts: start from "
        f"#{start if start is not None else 0}, prefer `{best}`. Load it before choosing the next family or start."
    )
    proof = numbers(sorted(entry.number for item in evidence.values() for entry, _ in item.wins)[-10:])
    body = "\n\n".join(
        (
            "# Where the search pays",
            f"1. Put the files on #{start}: `coral checkout {start}`."
            if start is not None
            else "1. Start from the seed.",
            f"2. Use the family that pays, `{best}`: it {FAMILIES[best].about}.",
            "3. Keep what the public check calls better, with every constraint strictly met, and hand it in.",
            table(evidence),
            f"Proof: {proof}. The head of this file has the same figures for programs (`credit`: tries, wins, gain).",
            "It does not help where the best start has reached the plateau that the synthesis names; then take a "
            "family that the table does not list.",
        )
    )
    front = head(situation.world.agent, description, credit, start, situation.board.count)
    return WriteSkill(name=NAME, front=front, body=body)
