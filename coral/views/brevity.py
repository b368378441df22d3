"""A prompt no longer than an agent program can take: the longest of its sections are cut, and say so."""

from collections.abc import Sequence

MAX_CHARACTERS = 400_000  # of a prompt: what many models take at all
LEAST_SHOWN = 500  # of a section that is cut


def shortened(sections: Sequence[dict[str, str]], room: int) -> list[dict[str, str]]:
    """The sections, so that their texts together have no more characters than there is room for, as far as each may
    keep its beginning. Only those that are longer than others lose anything."""
    limit = max((len(section["text"]) for section in sections), default=0)
    while limit > LEAST_SHOWN and sum(min(len(section["text"]), limit) for section in sections) > room:
        limit = max(limit * 9 // 10, LEAST_SHOWN)
    return [{**section, "text": _cut(section["text"], limit)} for section in sections]


def _cut(text: str, limit: int) -> str:
    left_out = len(text) - limit
    if left_out <= 0:
        return text
    return f"{text[:limit]}\n\n[The prompt would be too long: {left_out} more characters of this section are left out.]"
