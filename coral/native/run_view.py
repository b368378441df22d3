"""What the agent sees of the run: published records, other agents' files, the shared knowledge. It only looks.

Everything here is open to every agent: `attempts/`, the objects of the hub, which each clone can read, and `.shared`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from attempts.files import read_bytes
from attempts.record import Attempt, Direction
from attempts.store import Missing, Store, StoreError
from coral.native.answers.skill import Lesson, lesson_of
from coral.native.known_attempts import Board, Entry
from workspace.errors import GitError
from workspace.knowledge import Note, list_skills, recent_notes
from workspace.layout import Layout

POINTS = 60  # attempts whose files are kept at hand
NOTES = 400  # read for a synthesis


class Surroundings:
    """`shares`: whether the agent knows the fleet's knowledge; without it, other agents' attempts are not looked at."""

    def __init__(self, run: Path, agent: str, clone: Path, state: Path, direction: Direction) -> None:
        self.layout = Layout(run)
        self.agent, self.clone, self.direction = agent, clone, direction
        self.store = Store(self.layout.attempts)
        self.shared = clone / ".shared"
        self.points = state / "points"
        self.shares = self.shared.resolve() == self.layout.shared.resolve()

    def update(self, board: Board) -> Board:
        """The board with all records published since."""
        return board.take(self._records(board.wanted(self.store.numbers())), self.direction)

    def contradiction(self, board: Board) -> str:
        """Where the board disagrees with the records, as after a run was restored from an older copy; or nothing."""
        for entry in board.best.values():
            try:
                if self.store.read(entry.number).commit != entry.commit:
                    return f"#{entry.number} is not the attempt that I remember"
            except Missing:
                return f"#{entry.number}, which I remember, is not there"
            except (StoreError, OSError):
                continue
        return ""

    def _records(self, numbers: Iterable[int]) -> Iterable[Attempt]:
        for number in numbers:
            try:
                attempt = self.store.read(number)
            except (StoreError, OSError):
                continue
            if self.shares or attempt.agent in (self.agent, ""):
                yield attempt

    def files(self, entry: Entry, names: Iterable[str]) -> Mapping[str, str]:
        """The named files of an attempt as far as they can be read; each attempt is asked for once."""
        kept = self.points / f"{entry.number}.json"
        try:
            held = json.loads(kept.read_bytes())
            if isinstance(held, dict) and all(isinstance(text, str) for text in held.values()):
                return held
        except (OSError, ValueError):
            pass
        texts = {name: text for name in names if (text := self._file(entry.commit, name)) is not None}
        self._keep(kept, texts)
        return texts

    def _file(self, commit: str, name: str) -> str | None:
        from workspace.git import Git  # takes longer than all the rest; most launches need no file that is not kept

        try:
            return Git(self.clone / ".git").run("cat-file", "blob", f"{commit}:{name}").decode("utf-8")
        except (GitError, UnicodeDecodeError):
            return None

    def _keep(self, path: Path, texts: Mapping[str, str]) -> None:
        self.points.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        temporary.write_text(json.dumps(texts), encoding="utf-8")
        temporary.replace(path)
        kept = sorted(self.points.glob("*.json"), key=lambda p: p.stat().st_mtime)
        for old in kept[:-POINTS]:
            old.unlink(missing_ok=True)

    def lessons(self) -> list[Lesson]:
        """The skills in the shared knowledge that a search can load."""
        return [lesson for skill in list_skills(self.shared) if (lesson := lesson_of(skill))]

    def notes(self) -> list[Note]:
        """The notes of the fleet, newest first."""
        return recent_notes(self.shared, NOTES)

    def checklist(self) -> str:
        """The checklist of the checkpoint, if there is one."""
        for path in (self.shared / "HEARTBEAT.md", self.clone / "HEARTBEAT.md"):
            try:
                return read_bytes(path).decode(errors="replace")[:20_000]
            except (OSError, ValueError):
                continue
        return ""
