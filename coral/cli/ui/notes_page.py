"""Prints what a run has learned on one page: the synthesis, what contradicts it, dead ends, and what is new.

Notes are text of agents, so every part of them must be printed through `format`, `Text` or `markdown`.
"""

import time
from collections.abc import Sequence

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from coral.cli.commands.status import print_heading
from coral.cli.ui.table import dim, print_title, table
from coral.reading.knowledge_view import KnowledgeView
from coral.views import format
from coral.views.evidence import Evidence, NoteState
from workspace.notes import Note, NumberedNote

LISTED = 15
FLAGGED = 5
LOOKED_AT = 100  # of the latest notes, in search of disputed or stale ones
AGAINST = (NoteState.DISPUTED, NoteState.STALE)
MORE = "coral notes --read N reads one · --all · --search TEXT · --about NAME · --disputed · diff · export"


def print_page(out: Console, knowledge: KnowledgeView, last_look: float | None) -> None:
    """Print the page. `last_look`: when the reader last looked, in seconds since the epoch; None if never."""
    if not knowledge.view.only_agent:
        print_heading(out, knowledge.view)
        out.print()
    if knowledge.synthesis is not None:
        print_synthesis(out, knowledge, knowledge.synthesis)
    _claims(out, knowledge)
    _conflicts(out, knowledge)
    _dead_ends(out, knowledge)
    _against(out, knowledge)
    _new(out, knowledge, last_look)
    out.print()
    out.print(dim(MORE))


def print_synthesis(out: Console, knowledge: KnowledgeView, note: Note) -> None:
    """Print a synthesis in full, and how many attempts came after it."""
    print_in_full(out, knowledge, [note])
    since = knowledge.attempts_since(note)
    if since is not None:
        current = Text(current_text(since), style="yellow" if since else "")
        out.print(Text.assemble(f"as of #{knowledge.as_of(note)}: ", current))


def current_text(since: int) -> str:
    """Return in words how current a synthesis is. `since`: how many attempts that count came after it."""
    return f"{format.plural(since, 'attempt')} came since" if since else "it knows of all attempts"


def print_in_full(out: Console, knowledge: KnowledgeView, notes: Sequence[Note]) -> None:
    from coral.cli.ui.markdown import markdown  # takes as long to load as all the rest

    for place, note in enumerate(notes):
        if place:
            out.print()
        out.print(Rule(title_line(note), align="left", style="cyan" if note.is_synthesis else "dim"))
        out.print(markdown(body_of(note)))
        _say_evidence(out, knowledge, note)


def print_list(out: Console, knowledge: KnowledgeView, notes: Sequence[NumberedNote], most: int) -> None:
    rows = []
    for note in map(knowledge.parse, notes[:most]):
        replaced, state = knowledge.superseded.get(note.name, ""), knowledge.evidence(note).state
        title = Text(note.title, style="bold cyan" if note.is_synthesis else "dim" if replaced else "")
        if replaced:
            title.append(f" (superseded by {replaced})")
        if state in AGAINST:
            title.append(f" ({state})", "yellow")
        if state is NoteState.ELSEWHERE:
            title.append(" (of an earlier run)", "dim")
        attempts = "" if note.is_earlier else " ".join(f"#{number}" for number in note.attempts[:6])
        rows.append([str(note.number), title, note.author, format.ago(note.created), attempts])
    out.print(table((">n", "title*", "author", "written?", "attempts*??"), rows, out.width))
    if len(notes) > most:
        out.print(dim(f"{len(notes) - most} more: coral notes --all"))


def _say_evidence(out: Console, knowledge: KnowledgeView, note: Note) -> None:
    """Print what the records say of the figures in a note; nothing if it has no such figures."""
    evidence = knowledge.evidence(note)
    if replaced := knowledge.superseded.get(note.name):
        out.print(dim(f"superseded by {replaced}"))
    if evidence.elsewhere:
        out.print(dim("of an earlier run: its attempts are none of this one, and no evidence here"))
    if evidence.agreeing:
        figures = "1 figure agrees" if evidence.agreeing == 1 else f"{evidence.agreeing} figures agree"
        out.print(dim(f"{figures} with the records"))
    for problem in reasons_against(evidence):
        out.print(Text.assemble((f"{evidence.state}  ", "yellow"), format.line(problem)))


def reasons_against(evidence: Evidence) -> tuple[str, ...]:
    """Return why a note is disputed or stale."""
    return evidence.disputed or ((evidence.stale,) if evidence.stale else ())


def _claims(out: Console, knowledge: KnowledgeView) -> None:
    """Print what each agent says that it is working on."""
    if knowledge.claims:
        print_title(out, "Taken up")
        rows = [[claim.agent, claim.gap, format.ago(claim.created), claim.note] for claim in knowledge.claims]
        out.print(table(("agent", "what*", "since", "note*??"), rows, out.width))


def _conflicts(out: Console, knowledge: KnowledgeView) -> None:
    if not knowledge.conflicts:
        return
    print_title(out, "In conflict, until an attempt decides")
    for conflict in knowledge.conflicts[:LISTED]:
        for place, note in enumerate((conflict.claim, conflict.other)):
            out.print(Text.assemble(dim("  but  " if place else "       "), title_line(note)))
        if conflict.why:
            out.print(Text.assemble(("       not decided: ", "yellow"), conflict.why))


def _dead_ends(out: Console, knowledge: KnowledgeView) -> None:
    if not knowledge.dead_ends:
        return
    print_title(out, "Dead ends")
    rows: list[list[str | Text]] = []
    for note in knowledge.dead_ends[:LISTED]:
        state = knowledge.evidence(note).state
        mark = Text(state if state in AGAINST else "", style="yellow")
        attempts = "of an earlier run" if note.is_earlier else " ".join(f"#{number}" for number in note.attempts[:6])
        rows.append([str(note.number), ", ".join(note.about), note.title, attempts, mark])
    headings = [">n", "about*", "title*", "attempts*?", "state"]
    if not any(row[-1] for row in rows):
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    out.print(table(headings, rows, out.width))
    if len(knowledge.dead_ends) > LISTED:
        out.print(dim(f"{len(knowledge.dead_ends) - LISTED} more: coral notes --dead-ends"))


def _against(out: Console, knowledge: KnowledgeView) -> None:
    """Print those of the latest notes that are disputed or stale."""
    latest = [note for note in map(knowledge.parse, knowledge.notes[-LOOKED_AT:][::-1]) if not note.is_synthesis]
    current = [note for note in latest if note.name not in knowledge.superseded and not note.is_dead_end]
    judged = [(note, knowledge.evidence(note)) for note in current]
    flagged = [(note, evidence) for note, evidence in judged if evidence.state in AGAINST]
    if not flagged:
        return
    print_title(out, "Disputed or stale")
    for note, evidence in flagged[:FLAGGED]:
        out.print(title_line(note))
        for problem in reasons_against(evidence)[:2]:
            out.print(Text.assemble((f"   {evidence.state}  ", "yellow"), format.line(problem)))
    if len(flagged) > FLAGGED:
        out.print(dim(f"{len(flagged) - FLAGGED} more: coral notes --disputed"))


def _new(out: Console, knowledge: KnowledgeView, last_look: float | None) -> None:
    """Print the notes that were written since the reader last looked; the first time, the latest notes."""
    hidden = {number for number, _ in knowledge.syntheses}  # the last one is shown above, and replaces the others
    notes = knowledge.notes if last_look is None else knowledge.since(last_look)
    current = [note for note in reversed(notes) if note[1].name not in knowledge.superseded]
    chosen = [note for note in current if note[0] not in hidden]
    if last_look is not None:
        ago = format.duration(max(time.time() - last_look, 0), units=1)
        if not chosen:
            out.print()
            kept = format.plural(len(knowledge.notes), "note")
            nothing = "nothing else" if current else "nothing"  # a new synthesis was printed above
            out.print(dim(f"{nothing} is new since you looked {ago} ago; `coral notes --all` lists {kept}"))
            return
        print_title(out, f"New since you looked {ago} ago")
    elif chosen:
        print_title(out, "Notes")
    if chosen:
        print_list(out, knowledge, chosen, LISTED)


def title_line(note: Note) -> Text:
    """Return a note as one line: number, title, author, age, and the attempts that it rests on."""
    about = [part for part in (note.author, format.ago(note.created), _attempts(note)) if part]
    return Text.assemble(dim(f"{note.number}  "), (note.title, "bold"), dim("  " + " · ".join(about)))


def _attempts(note: Note) -> str:
    shown = " ".join(f"#{number}" for number in note.attempts[:8])
    return shown + (" …" if len(note.attempts) > 8 else "")


def body_of(note: Note) -> str:
    """Return the body of a note without a first heading that only repeats its title."""
    first, _, rest = note.body.lstrip().partition("\n")
    return rest if first.startswith("#") and first.lstrip("# ").strip() == note.title else note.body
