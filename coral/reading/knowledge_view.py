"""What a run knows, as the commands show it: its notes, whether the records support each, and which notes are new to
the operator.

There may be thousands of notes, so a note is parsed only when it is needed. The time of the operator's last look at the
notes is kept in the run's private folder, where no agent can write.
"""

import contextlib
import os
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path

from attempts.files import write_json
from attempts.index import query
from coral.reading import lenient_json, visibility
from coral.reading.run_view import RunView
from coral.reading.visibility import alone_in
from coral.views.conflicts import Conflict, open_conflicts
from coral.views.evidence import Evidence, Find, NoteState, Records, as_of, check_evidence, judge
from workspace.claims import LATEST, Claim, claims_of
from workspace.dead_ends import KINDS, mentions
from workspace.layout import Layout
from workspace.notes import (
    EARLIER,
    Note,
    NumberedNote,
    find_raw_notes,
    related_notes,
    superseded,
)


@dataclass(frozen=True, slots=True)
class JudgedNote:
    """A note, how it stands to the records, and the name of the note that takes its place, or nothing."""

    note: Note
    evidence: Evidence
    superseded_by: str = ""

    @property
    def state(self) -> NoteState:
        return self.evidence.state


@dataclass(frozen=True)
class KnowledgeView:
    """The notes of a run, oldest first. Each property is read when it is first used."""

    view: RunView

    @cached_property
    def notes(self) -> list[NumberedNote]:
        return find_raw_notes(folders(self.view.layout))

    @cached_property
    def syntheses(self) -> list[NumberedNote]:
        return [note for note in self.notes if note[1].is_synthesis and not note[1].name.startswith(EARLIER)]

    @cached_property
    def synthesis(self) -> Note | None:
        """The latest synthesis, which replaces all earlier ones; None if there is none."""
        return self.parse(self.syntheses[-1]) if self.syntheses else None

    @cached_property
    def _related(self) -> list[Note]:
        return related_notes(self.notes)

    @cached_property
    def superseded(self) -> dict[str, str]:
        """The name of each superseded note, with the name of the note that supersedes it."""
        return superseded(self.notes, self._related)

    @cached_property
    def conflicts(self) -> list[Conflict]:
        """The pairs of claims that contradict each other, of which no attempt has shown yet which one is right."""
        wanted = {name for note in self._related for name in note.contradicts}
        named = [note.parse(number) for number, note in self.notes if note.name in wanted]
        return open_conflicts(self._related, named, self.superseded, self.find)

    @cached_property
    def dead_ends(self) -> list[Note]:
        """The notes about dead ends, latest first, without superseded ones."""
        found = [note.parse(number) for number, note in self.notes if note.may_mention(KINDS)]
        return [note for note in reversed(found) if note.is_dead_end and note.name not in self.superseded]

    @cached_property
    def claims(self) -> list[Claim]:
        """What each agent says in its latest notes that it is working on."""
        claiming = [note for note in self.notes[-LATEST:] if note[1].may_mention(("claims",))]
        return claims_of(self.parse(note) for note in claiming)

    @cached_property
    def _new_bests(self) -> list[int]:
        return self.view.index.ask(query.new_bests)

    @cached_property
    def find(self) -> Find:
        """A cached function from the number of an attempt to its record: notes name the same attempts again and
        again."""
        return cache(self.view.attempt_or_none)

    @cached_property
    def records(self) -> Records:
        """The scores that figures in notes are compared with."""
        return Records(self.find, self._scores, self.view.direction)

    def _scores(self, number: int) -> tuple[float, ...]:
        found = self.view.index.ask(lambda rows: query.measured(rows, number))
        return () if found is None else found.scores

    def parse(self, note: NumberedNote) -> Note:
        return note[1].parse(note[0])

    def evidence(self, note: Note) -> Evidence:
        if self.view.only_agent:
            return Evidence()  # the reader may not see attempts of others that a note may name
        return judge(note, self.records, self.view.epoch, self._new_bests)

    def checked(self, note: Note) -> Evidence:
        """Return the evidence without whether the note is stale."""
        return Evidence() if self.view.only_agent else check_evidence(note, self.records)

    def judged(self, note: NumberedNote) -> JudgedNote:
        parsed = self.parse(note)
        return JudgedNote(parsed, self.evidence(parsed), self.superseded.get(parsed.name, ""))

    def as_of(self, note: Note) -> int | None:
        """Return the number of the latest attempt that the note names; None if it names none that exists."""
        return as_of(note, self.find)

    def attempts_since(self, note: Note) -> int | None:
        """Return how many attempts that count have come after the latest that the note names; None if it names none
        that exists."""
        last, only_agent = self.as_of(note), self.view.only_agent
        return None if last is None else self.view.index.ask(lambda rows: query.evals(rows, only_agent, last))

    def about(self, word: str) -> list[NumberedNote]:
        """Return the notes about a file, a parameter or a technique: those with the word in `about` of their head or,
        if they have no `about`, in their title."""
        wanted = word.casefold()
        likely = [note for note in self.notes if note[1].contains([wanted])]
        return [note for note in likely if _is_about(self.parse(note), wanted)]

    def since(self, moment: float) -> list[NumberedNote]:
        """Return the notes that were written or changed after `moment`, in seconds since the epoch."""
        return [note for note in self.notes if _changed(note[1].path) > moment]

    @property
    def last_look(self) -> float | None:
        """When the operator last looked at the notes, in seconds since the epoch; None before the first time."""
        return lenient_json.read(self.view.layout.notes_looked).number("at")

    def mark_look(self, at: float) -> None:
        """Remember that the operator looked at the notes at this time. Does nothing for an agent, or if the file cannot
        be written."""
        if self.view.is_open and not visibility.is_agent():
            with contextlib.suppress(OSError):
                write_json(self.view.layout.notes_looked, {"at": at}, durable=False)


def folders(layout: Layout) -> list[Path]:
    """Return the folders that hold notes: the shared one, and one for each agent that works alone. An agent that works
    alone gets only its own."""
    if agent := alone_in(layout):
        return [layout.shared_of(agent, share=False)]
    try:
        folders = sorted(path for path in (layout.root / "workspace" / "alone").iterdir() if path.is_dir())
    except OSError:
        folders = []
    return [layout.shared, *folders]


def nested(judged: JudgedNote) -> dict[str, object]:
    """Convert a note to an object for JSON."""
    shown = {"synthesis": judged.note.is_synthesis, "evidence": asdict(judged.evidence), "state": judged.state}
    return {**asdict(judged.note), "superseded_by": judged.superseded_by, **shown}


def _is_about(note: Note, wanted: str) -> bool:
    if note.about:
        return any(wanted in (word.casefold(), word.casefold().rpartition("/")[2]) for word in note.about)
    return mentions(note.title, wanted)


def _changed(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return 0.0
