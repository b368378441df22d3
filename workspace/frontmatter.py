"""The lines between `---` at the head of a note or a skill: written as YAML, read with tolerance.

Agents write these by hand, so reading never fails: what is not understood is left out. Values are texts or lists of
texts. Scalars, quotes, lists, and folded and literal blocks are understood.
"""

import json
import re
from collections.abc import Mapping, Sequence

Scalar = str | int | float | bool | None
Value = Scalar | Sequence[Scalar]

_LINES = 200
_ITEMS = 100  # of one list that are read
_KEY = re.compile(r"([A-Za-z_][\w-]{0,63})[ \t]*:(?:[ \t]+(.*))?")
_ITEM = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,]+)""")
_SAFE = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_NOT_TEXTS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}  # for some readers of YAML
# JSON may hold these as they are; YAML may not.
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def split(text: str) -> tuple[dict[str, str | list[str]], str]:
    """Return the values at the head of `text`, by key in lower case, and the text after the head."""
    lines = text.removeprefix("\ufeff").split("\n", _LINES)
    if lines[0].rstrip() != "---":
        return {}, text
    for end, line in enumerate(lines[1:_LINES], start=1):
        if line.rstrip() in ("---", "..."):
            return _parse(lines[1:end]), "\n".join(lines[end + 1 :]).lstrip("\n")
    return {}, text


def write(front: Mapping[str, Value], body: str) -> str:
    head = "".join(f"{key}: {_dump(value)}\n" for key, value in front.items())
    return f"---\n{head}---\n\n{body.strip()}\n"


def words(value: str | list[str] | None) -> str:
    return ", ".join(value) if isinstance(value, list) else value or ""


def texts(value: str | list[str] | None) -> tuple[str, ...]:
    """Return the items of a list, or of a line with commas; at most _ITEMS."""
    items = value if isinstance(value, list) else (value or "").split(",")
    return tuple(filter(None, (as_line(item, 200).removesuffix(".md") for item in items[:_ITEMS])))


def as_line(text: str, length: int) -> str:
    """Return the text as one printable line of at most `length` characters: names and titles go into prompts and onto
    terminals."""
    if text.isascii() and text.isprintable():
        return " ".join(text[: length * 4].split())[:length]
    shown = "".join(character if character.isprintable() else " " for character in text[: length * 4])
    return " ".join(shown.encode("utf-8", "replace").decode().split())[:length]


def _parse(lines: list[str]) -> dict[str, str | list[str]]:
    found: dict[str, str | list[str]] = {}
    at = 0
    while at < len(lines):
        key = _KEY.fullmatch(lines[at].rstrip())
        at += 1
        if key is None:
            continue
        start = at
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or lines[at].startswith("- ")):
            at += 1
        found[key[1].lower()] = _value((key[2] or "").strip(), [line.strip() for line in lines[start:at]])
    return found


def _value(first: str, more: list[str]) -> str | list[str]:
    items = [line[2:] for line in more if line.startswith("- ")]
    if first[:1] in ("|", ">"):
        return ("\n" if first[0] == "|" else " ").join(more).strip()
    if not first and items:
        return [_scalar(item) for item in items]
    whole = " ".join((first, *more)).strip()
    if whole.startswith("["):
        return [_scalar(item) for item in _ITEM.findall(whole[1:].rpartition("]")[0])]
    return _scalar(whole)


def _scalar(text: str) -> str:
    text = text.strip()
    if text.startswith('"'):
        try:
            value, _ = json.JSONDecoder().raw_decode(text)
        except ValueError:
            return text.strip('"')
        return str(value)
    if text.startswith("'"):
        return text[1:].rpartition("'")[0].replace("''", "'")
    # `#17` is an attempt, `# 17` a comment.
    return re.split(r"(?:^|\s)#(?:\s|$)", text, maxsplit=1)[0].strip()


def _dump(value: Value) -> str:
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, str):
        return _quote(value)
    return "[" + ", ".join(_dump(item) for item in value) + "]"


def _quote(text: str) -> str:
    if _SAFE.fullmatch(text) and text.lower() not in _NOT_TEXTS:
        return text
    whole = text.encode("utf-8", "replace").decode()
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(whole, ensure_ascii=False))
