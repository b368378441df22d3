"""Replaces `${section.key}` in the texts of a task of the other CORAL by the value of that key of the same file.

A text that is one `${...}` and nothing else becomes the value itself, whatever its type. A name that no key of the file
has is a problem of the file.
"""

import re
from typing import Any

from coral.config.document import MAX_VALUES, Document, KeyPath, Problem, nearest

LONGEST = 200_000  # characters of a text with the values that it names; as many as a task may have
_NAMED = re.compile(r"\$\{\s*([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)\s*\}")


def interpolate(document: Document) -> None:
    """Replace the names in a document. Adds a problem for each text with a name that no key has or that names
    itself."""
    if isinstance(document.data, dict):
        document.data = _Interpolation(document).value(document.data, (), ())


class _UnresolvableError(Exception):
    """A name without a value; the message says why."""


class _Interpolation:
    def __init__(self, document: Document) -> None:
        self._document, self._given = document, document.data
        self._values = 0

    def value(self, value: Any, path: KeyPath, within: tuple[str, ...]) -> Any:
        """Return the value with every name in it replaced. `within`: the names whose values are being looked up."""
        self._values += 1
        if isinstance(value, dict):
            return {key: self.value(inner, (*path, key), within) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.value(inner, (*path, place), within) for place, inner in enumerate(value)]
        if not isinstance(value, str) or "${" not in value:
            return value
        if within:
            return self._text(value, within)
        try:
            return self._text(value, ())
        except _UnresolvableError as problem:
            self._document.problems.append(Problem(path, str(problem), nearest(self._document.marks, path)))
            return value

    def _text(self, text: str, within: tuple[str, ...]) -> Any:
        if (whole := _NAMED.fullmatch(text)) is not None:
            return self._named(whole[1], within)
        made = _NAMED.sub(lambda match: self._inside(match[1], within), text)
        if len(made) > LONGEST:
            raise _UnresolvableError(f"has more than {LONGEST} characters with what it names")
        return made

    def _inside(self, name: str, within: tuple[str, ...]) -> str:
        found = self._named(name, within)
        if isinstance(found, dict | list):
            raise _UnresolvableError(f'"${{{name}}}" is a section or a list, which cannot stand inside a text')
        return str(found)

    def _named(self, name: str, within: tuple[str, ...]) -> Any:
        if name in within:
            raise _UnresolvableError(f'"${{{name}}}" leads back to itself')
        if self._values > MAX_VALUES:
            raise _UnresolvableError(f"names more than {MAX_VALUES} values")
        found: Any = self._given
        for part in name.split("."):
            if not isinstance(found, dict) or part not in found:
                raise _UnresolvableError(f'"${{{name}}}" names no key of this file')
            found = found[part]
        return self.value(found, (), (*within, name))
