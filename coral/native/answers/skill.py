"""The skill that native agents write for each other: which families have gained, in words and in figures.

The front matter of its SKILL.md carries the counts of each family and the best start; a search that loads it chooses
its families and its start by them. A file that is not of this form is somebody else's skill and is left alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from attempts.files import read_bytes
from coral.native.search.bandit import FamilyStats, StatsByFamily
from workspace import frontmatter
from workspace.knowledge import Skill

NAME = "where-the-search-pays"
FORM = "coral-search/1"


@dataclass(frozen=True, slots=True)
class SearchSkill:
    """What a search loads from a skill. `start` is the attempt to start from, None if the skill names none."""

    name: str
    author: str
    stats: StatsByFamily
    start: int | None
    after: int  # attempts of the fleet that it rests on

    @property
    def version(self) -> str:
        """A text that differs between versions of the skill."""
        return f"{self.name} by {self.author} after {self.after} attempts"


def front_of(skill: Skill, form: str) -> dict[str, str | list[str]]:
    """Read the front matter of a skill of this run. Empty if the skill has another form, or cannot be read."""
    if skill.is_earlier:
        return {}
    try:
        front, _ = frontmatter.split(read_bytes(skill.path).decode(errors="replace")[:65536])
    except (OSError, ValueError):
        return {}
    return front if front.get("form") == form else {}


def search_skill_of(skill: Skill) -> SearchSkill | None:
    """Read what a search can load from a skill of this run; None if the skill has another form."""
    front = front_of(skill, FORM)
    try:
        data = json.loads(frontmatter.words(front.get("families")))
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping):
        return None
    stats = {str(name): FamilyStats.from_dict(item) for name, item in data.items() if isinstance(item, Mapping)}
    return SearchSkill(skill.name, skill.author, stats, _number(front.get("start")), _number(front.get("after")) or 0)


def front_matter(
    author: str, description: str, stats: StatsByFamily, start: int | None, after: int
) -> dict[str, frontmatter.Value]:
    """Return the front matter that `search_skill_of` reads."""
    return {
        "description": description,
        "author": author,
        "form": FORM,
        "after": after,
        "start": start,
        "families": json.dumps({family: counts.to_dict() for family, counts in sorted(stats.items())}),
    }


def _number(value: str | list[str] | None) -> int | None:
    text = frontmatter.words(value)
    return int(text) if text.isdecimal() and len(text) < 10 else None
