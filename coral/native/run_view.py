"""Reads the run for the agent: published records, files of other agents' attempts, the shared knowledge.

Every agent may read all of these: `attempts/`, the objects of the hub, which each clone can read, and `.shared`.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attempts.record import Attempt, Direction
from attempts.store import Store
from coral.native.memory import KnownAttempts
from coral.native.shared_skills import HandOver, SearchSkill, read_skill
from workspace.errors import GitError
from workspace.knowledge import list_skills
from workspace.layout import Layout
from workspace.notes import Note, recent_notes

NOTES = 400  # read for a synthesis


class AgentRunView:
    """The run as one agent sees it. `shares`: whether the agent shares the fleet's knowledge; if not, other agents'
    attempts are not read."""

    def __init__(self, run: Path, agent: str, clone: Path, state: Path, direction: Direction) -> None:
        self.layout = Layout(run)
        self.agent, self.clone, self.state, self.direction = agent, clone, state, direction
        self.store = Store(self.layout.attempts)
        self.shared = clone / ".shared"
        self.shares = self.shared.resolve() == self.layout.shared.resolve()

    def update(self, known: KnownAttempts) -> KnownAttempts:
        """Return the known attempts with all records published since."""
        found = filter(None, map(self.store.find, known.unread(self.store.numbers())))
        records = (record for record in found if self.shares or record.agent in (self.agent, ""))
        return known.add(records, self.direction)

    def files(self, attempt: Attempt, names: Iterable[str]) -> dict[str, str]:
        """Return the named files of an attempt; empty texts for those that cannot be read."""
        return {name: self._git("cat-file", "blob", f"{attempt.commit}:{name}") for name in names}

    def head(self) -> str:
        """Return the clone's last commit; empty if there is none."""
        return self._git("rev-parse", "HEAD").strip()

    def tracked(self) -> dict[str, str]:
        """Return the files of the clone's last commit by name, each with the object that it is; empty if there is no
        commit."""
        entries = self._git("ls-tree", "-r", "-z", "HEAD").split("\0")[:-1]
        return {name: about for about, name in (entry.split("\t", 1) for entry in entries)}

    def _git(self, *arguments: str) -> str:
        """Return what a command of git prints in the clone; empty if it fails."""
        from workspace.git import Git  # imported late: many launches read no files

        with suppress(GitError):
            return Git(self.clone / ".git").run(*arguments).decode("utf-8", "replace")
        return ""

    def skills(self) -> tuple[SearchSkill | None, tuple[HandOver, ...]]:
        """Return the skill that a search can load, and the attempts that agents hand over, to be tuned."""
        found = [read_skill(skill) for skill in list_skills(self.shared)]
        handed = [replace(skill, given_back=self._is_back(skill)) for skill in found if isinstance(skill, HandOver)]
        return next((skill for skill in found if isinstance(skill, SearchSkill)), None), tuple(handed)

    def _is_back(self, handed: HandOver) -> bool:
        return (self.shared / "notes" / f"{handed.note_of(self.agent)}.md").is_file()

    def notes(self) -> list[Note]:
        """Return the notes of the fleet, newest first."""
        return recent_notes(self.shared, NOTES)
