"""The pages of the documentation, as `coral help` shows them and as the site is built from them.

A page is a Markdown file in docs/. What follows from the code is not written there: a line that ends in `<!-- made:
NAME -->` is replaced by what `made.MADE` makes for that name. The rest of that line is for readers of the file itself.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from coral.cli.help.made import MADE
from coral.errors import CoralError

PACKAGE = Path(__file__).parents[2]
FOLDERS = (PACKAGE / "docs", PACKAGE.parent / "docs")  # of an installed wheel, of a checkout
MADE_HERE = re.compile(r"^.*<!-- made: ([a-z-]+) -->$", re.MULTILINE)
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)
_IMAGE = re.compile(r"^!\[.*?\]\(.*?\)\n", re.MULTILINE)
_LINK = re.compile(
    r"^( *)```.*?^\1```|`[^`\n]*`|\[([^\]\n]+)\]\((?!\w+:)([^)\s]*)\)", re.MULTILINE | re.DOTALL
)  # or code
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """A page. `topic`: the name of its file, by which the user asks for it."""

    topic: str
    path: Path

    @property
    def title(self) -> str:
        found = _HEADING.search(self.path.read_text(encoding="utf-8"))
        return found[1] if found else self.topic

    def markdown(self) -> str:
        """Return the whole page, with the parts that are made by code."""
        return filled(self.path.read_text(encoding="utf-8"))

    def plain(self) -> str:
        """Return the page for a terminal: without pictures and comments, and with the topic in place of a link to
        another page."""
        return as_words(_IMAGE.sub("", _COMMENT.sub("", self.markdown())))


def filled(text: str) -> str:
    """Replace each line with `<!-- made: NAME -->` by what is made for that name. KeyError for an unknown name."""
    return MADE_HERE.sub(lambda match: MADE[match[1]]().rstrip(), text)


def as_words(text: str) -> str:
    """Replace links by their texts; a link to another page is followed by its topic."""
    return _LINK.sub(_named, text)


def _named(found: re.Match[str]) -> str:
    """Return a link as words, and code as it is."""
    text, target = found[2], Path((found[3] or "").partition("#")[0])
    if not text:
        return found[0]
    is_topic = target.suffix == ".md" and target.parent == Path() and target.stem != "README"
    return f"{text} (`coral help {target.stem}`)" if is_topic else text


def pages() -> dict[str, Page]:
    """Return all pages by topic. CoralError if the folder of the documentation is missing."""
    folder = next((folder for folder in FOLDERS if folder.is_dir()), None)
    if folder is None:
        raise CoralError(f"cannot show help: {FOLDERS[0]} is missing", "install Coral again; `coral --help` needs none")
    return {path.stem: Page(path.stem, path) for path in sorted(folder.glob("*.md"))}


def page_of(topic: str) -> Page:
    """Return the page of a topic, however it is written: `task.yaml` and `Task-YAML` are the same. CoralError if there
    is none."""
    from difflib import get_close_matches

    known, asked = pages(), re.sub(r"[ ._]+", "-", topic.strip().lower())
    if asked not in known:
        words = {word: name for name in reversed(known) for word in (*name.split("-"), name)}
        near = get_close_matches(asked, words, n=1)
        hint = f"did you mean `coral help {words[near[0]]}`?" if near else "`coral help --topics` lists the topics"
        raise CoralError(f"cannot show help on {topic!r}: there is no such topic", hint)
    return known[asked]
