"""The skill that native agents write for each other: where the search pays, in words and in figures.

The head of its SKILL.md carries the credit of each family and the best start; a search that loads it draws its families
and its start by them. A file that is not of this form is somebody else's skill and is left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from attempts.files import read_bytes
from coral.native.search.bandit import Book, Credit
from workspace import frontmatter
from workspace.knowledge import Skill

NAME = "where-the-search-pays"
FORM = "coral-search/1"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a search takes from a skill. `start` is the attempt to start from, None if the skill names none."""

    name: str
    author: str
    credit: Book
    start: int | None
    after: int  # attempts of the fleet that it rests on

    @property
    def mark(self) -> str:
        """What tells this version from another."""
        return f"{self.name} by {self.author} after {self.after} attempts"


def lesson_of(skill: Skill) -> Lesson | None:
    """The lesson in a skill, if it is of our form."""
    try:
        front, _ = frontmatter.split(read_bytes(skill.path).decode(errors="replace")[:65536])
    except (OSError, ValueError):
        return None
    if front.get("form") != FORM:
        return None
    try:
        data = json.loads(frontmatter.words(front.get("credit")))
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, Mapping):
        return None
    credit = {str(name): Credit.from_dict(item) for name, item in data.items() if isinstance(item, Mapping)}
    return Lesson(skill.name, skill.author, credit, _number(front.get("start")), _number(front.get("after")) or 0)


def head(author: str, description: str, credit: Book, start: int | None, after: int) -> dict[str, frontmatter.Value]:
    """The front matter that `lesson_of` reads."""
    return {
        "description": description,
        "author": author,
        "form": FORM,
        "after": after,
        "start": start,
        "credit": json.dumps({name: item.to_dict() for name, item in sorted(credit.items())}),
    }


def _number(value: str | list[str] | None) -> int | None:
    text = frontmatter.words(value)
    return int(text) if text.isdecimal() and len(text) < 10 else None
