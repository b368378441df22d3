"""The pages of the documentation as `coral help` shows them, and as the site is built from them.

A page is a Markdown file in docs/. What code knows better does not stand in it: a line that ends in
`<!-- made: NAME -->` is replaced by what the code says (see `made.MADE`). The rest of the line is for those who read
the file itself.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from coral.cli.help.made import MADE
from coral.errors import CoralError

PACKAGE = Path(__file__).parents[2]
FOLDERS = (PACKAGE / "docs", PACKAGE.parent / "docs")  # in an installed wheel; in a checkout
MADE_HERE = re.compile(r"^.*<!-- made: ([a-z-]+) -->$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r"^!\[.*?\]\(.*?\)\n", re.MULTILINE)
_LINK = re.compile(
    r"^( *)```.*?^\1```|`[^`\n]*`|\[([^\]\n]+)\]\((?!\w+:)([^)\s]*)\)", re.MULTILINE | re.DOTALL
)  # or code
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """`topic`: by which it is asked for, the name of its file."""

    topic: str
    path: Path

    @property
    def title(self) -> str:
        found = _HEADING.search(self.path.read_text(encoding="utf-8"))
        return found[1] if found else self.topic

    def markdown(self) -> str:
        """The whole page, with what the code says in it."""
        return filled(self.path.read_text(encoding="utf-8"))

    def plain(self) -> str:
        """The page for a terminal: no pictures and no comments; a link to a page names the topic."""
        return as_words(_IMAGE.sub("", _COMMENT.sub("", self.markdown())))


def filled(text: str) -> str:
    """The text, in which each line with `<!-- made: NAME -->` is replaced by what it names. KeyError for an unknown
    name."""
    return MADE_HERE.sub(lambda found: MADE[found[1]]().rstrip(), text)


def as_words(text: str) -> str:
    """The text with its links in words: of a page by its topic."""
    return _LINK.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    """A link in words; code as it is."""
    text, target = found[2], Path((found[3] or "").partition("#")[0])
    if not text:
        return found[0]
    is_topic = target.suffix == ".md" and target.parent == Path() and target.stem != "README"
    return f"{text} (`coral help {target.stem}`)" if is_topic else text


def pages() -> dict[str, Page]:
    """All pages by topic."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise CoralError(f"cannot show help: {FOLDERS[0]} is missing", "install Coral again; `coral --help` needs none")
    return {path.stem: Page(path.stem, path) for path in sorted(folder.glob("*.md"))}


def page_of(topic: str) -> Page:
    """The page of a topic, however it is written: `task.yaml` and `Task-YAML` are the same."""
    from difflib import get_close_matches

    known, asked = pages(), re.sub(r"[ ._]+", "-", topic.strip().lower())
    if asked not in known:
        words = {word: name for name in reversed(known) for word in (*name.split("-"), name)}
        near = get_close_matches(asked, words, n=1)
        hint = f"did you mean `coral help {words[near[0]]}`?" if near else "`coral help --topics` lists the topics"
        raise CoralError(f"cannot show help on {topic!r}: there is no such topic", hint)
    return known[asked]
