"""The skills that agents read as data: where the search has paid, and an attempt whose numbers are to be tuned.

Each is a skill in the shared knowledge whose front matter names its form. A file that is not of such a form is somebody
else's skill and is left alone.
"""

import json
from dataclasses import dataclass

from attempts.files import read_bytes
from coral.native.search.bandit import Counts
from workspace import frontmatter
from workspace.frontmatter import Value, words
from workspace.knowledge import Skill

WHERE_IT_PAYS = "where-the-search-pays"  # all agents rewrite this one
SEARCH_FORM, HAND_OVER_FORM = "coral-search/1", "coral-hand-over/1"
MOST_TRIES = 1e6


@dataclass(frozen=True, slots=True)
class SearchSkill:
    """Which families have gained. `after`: the number of the last attempt that it rests on."""

    author: str
    after: int
    counts: Counts

    def front(self, description: str) -> dict[str, Value]:
        about: dict[str, Value] = {"description": description, "author": self.author, "form": SEARCH_FORM}
        return {**about, "after": self.after, "families": json.dumps(self.counts, sort_keys=True)}


@dataclass(frozen=True, slots=True)
class HandOver:
    """An attempt that its author, an agent with a model, hands to those that search: one for each author, which a new
    one replaces. `given_back`: whether the agent that reads it has written its note about the result."""

    author: str
    attempt: int
    given_back: bool = False

    def note_of(self, agent: str) -> str:
        """Return the name of the note in which an agent reports the result."""
        return f"tuned-{self.attempt}-by-{agent}"

    def front(self, why: str) -> dict[str, Value]:
        description = f"Tune the numbers of #{self.attempt}, whose author hands it over: {why}"
        return {"description": description, "author": self.author, "form": HAND_OVER_FORM, "attempt": self.attempt}


def read_skill(skill: Skill) -> SearchSkill | HandOver | None:
    """Read a skill of this run as data; None if it is of no form, or not as the form has it: any agent may write it."""
    try:
        front, _ = frontmatter.split(read_bytes(skill.path).decode(errors="replace")[:65536])
        if front.get("form") == HAND_OVER_FORM and not skill.is_earlier:
            return HandOver(skill.author, int(words(front["attempt"])))
        if front.get("form") == SEARCH_FORM and not skill.is_earlier:
            counts = {name: (tries, wins) for name, (tries, wins) in json.loads(words(front["families"])).items()}
            if all(0 <= wins <= tries <= MOST_TRIES for tries, wins in counts.values()):
                return SearchSkill(skill.author, int(words(front["after"])), counts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None
