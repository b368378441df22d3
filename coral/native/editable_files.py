"""Reads those text files of a clone that the agent may change."""

from collections.abc import Sequence
from pathlib import Path

from coral.public_check.candidate import Texts

LARGEST_FILE = 1_000_000  # characters; a larger file is data, not a candidate
# Files that are no part of a candidate: Coral writes its instructions to agents into some of them.
LEFT_OUT = frozenset({".git", ".shared", "__pycache__", "AGENTS.md", "CLAUDE.md", "GEMINI.md"})


def editable_texts(root: Path, globs: Sequence[str]) -> Texts:
    """Return the editable text files below `root`, by relative name. Links, files behind one, and large or unreadable
    files are left out."""
    out: Texts = {}
    for pattern in globs:
        for path in sorted(root.glob(pattern.lstrip("/"))):
            name = path.relative_to(root)
            linked = any((root / part).is_symlink() for part in (name, *name.parents)[:-1])
            if LEFT_OUT & set(name.parts) or linked or not path.is_file():
                continue
            try:
                text = path.read_bytes().decode("utf-8")
            except (OSError, UnicodeDecodeError):
                continue
            if len(text) <= LARGEST_FILE and "\0" not in text:
                out[name.as_posix()] = text
    return out
