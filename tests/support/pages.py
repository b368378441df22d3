"""The documents as tests see them: their blocks, and what is said of each.

A block of `sh` is run as it is written, unless the line before it is `<!-- needs: ... -->`, which says what a test
does not have: a paid program, the network, a run of one's own. A block of `python` or `yaml` whose first line is
`# some/path` is that file. A block without a language is what somebody would see.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# The pages that say what to write and what to run. What benchmarks.md names, it has measured.
SHOWN = (ROOT / "README.md", *sorted(set(ROOT.glob("docs/*.md")) - {ROOT / "docs/benchmarks.md"}))
_BLOCK = re.compile(r"^(?:<!-- (\w+): (.*?) -->\n)?( *)```([\w-]*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w.-]+(?:/[\w.-]+)+)\n")


@dataclass(frozen=True, slots=True)
class Block:
    """`mark` and `why`: what the comment before it says; `text`: without the indentation of a list around it."""

    page: Path
    kind: str
    mark: str
    why: str
    text: str

    @property
    def file(self) -> str:
        """The path of the file that it is; empty for any other."""
        found = _FILE.match(self.text)
        return found[1] if found and self.kind in ("python", "yaml") else ""

    @property
    def commands(self) -> list[str]:
        return [line for line in self.text.splitlines() if line.strip()]


def blocks(pages: Iterable[Path] = SHOWN) -> list[Block]:
    found = []
    for page in pages:
        for mark, why, indent, kind, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
            plain = re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
            found.append(Block(page, kind, mark, why, plain))
    return found


def write_files(folder: Path, pages: Iterable[Path] = SHOWN) -> None:
    """Write the files that pages show. A file that two of them show must be the same."""
    written: dict[str, str] = {}
    for block in blocks(pages):
        if block.file:
            assert written.setdefault(block.file, block.text) == block.text, f"{block.file} differs between two pages"
            (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
