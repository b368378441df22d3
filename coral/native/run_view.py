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
        """Return the named files of an attempt as far as they can be read."""
        from workspace.git import Git  # imported late: many launches read no files

        git, texts = Git(self.clone / ".git"), dict[str, str]()
        for name in names:
            with suppress(GitError, UnicodeDecodeError):
                texts[name] = git.run("cat-file", "blob", f"{attempt.commit}:{name}").decode("utf-8")
        return texts

    def head(self) -> str:
        """Return the clone's last commit; empty if there is none."""
        from workspace.git import Git

        with suppress(GitError):
            return Git(self.clone / ".git").text("rev-parse", "HEAD")
        return ""

    def tracked(self) -> dict[str, str]:
        """Return the files of the clone's last commit by name, each with the object that it is; empty if there is no
        commit."""
        from workspace.git import Git

        with suppress(GitError):
            listed = Git(self.clone / ".git").run("ls-tree", "-r", "-z", "HEAD").decode("utf-8", "replace")
            return {name: about for entry in listed.split("\0")[:-1] for about, name in [entry.split("\t", 1)]}
        return {}

    def skills(self) -> tuple[SearchSkill | None, tuple[HandOver, ...]]:
        """Return the skill that a search can load, and the attempts that agents hand over, to be tuned."""
        found = [read_skill(skill) for skill in list_skills(self.shared)]
        handed = [replace(held, given_back=self._is_back(held)) for held in found if isinstance(held, HandOver)]
        return next((held for held in found if isinstance(held, SearchSkill)), None), tuple(handed)

    def _is_back(self, handed: HandOver) -> bool:
        return (self.shared / "notes" / f"{handed.note_of(self.agent)}.md").is_file()

    def notes(self) -> list[Note]:
        """Return the notes of the fleet, newest first."""
        return recent_notes(self.shared, NOTES)
