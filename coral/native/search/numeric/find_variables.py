"""From a file's text to its spots: JSON by its structure, Python by its tokens, anything else by a careful pattern.

Spots that stand alike share a column, spots that belong together a row: lists of JSON are tables, and so are runs of
lines that differ in nothing but their numbers. A text that cannot be read has no spots; it is never an error.
"""

from __future__ import annotations

import io
import json
import re
import tokenize
from collections import Counter
from dataclasses import replace
from itertools import groupby

from coral.native.search.numeric.variables import Kind, Spot, heed_comments, number, same_kind

JSON_MARKS = re.compile(r'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[\[\]{}:,]')

# No part of a name, a version, a date, a time or a fraction; a sign counts where no operand stands before it.
TEXT_NUMBER = re.compile(
    r"(?<![\w.$])(?<!\w[-+/:])(?:(?<![\w)\]])[-+])?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.]|[-/:]\d)"
)
QUOTED_OR_COMMENT = re.compile(r'"(?!\s*[-+.\d][\d.eE+-]*\s*")[^"\n]*"|(?:^|(?<=\s))(?:#|//)(?=\s|$).*', re.MULTILINE)
LEADING_ZERO = re.compile(r"[-+]?0\d")

BOOLEANS = ("False", "True")
BEFORE_BOOLEAN = frozenset("=:(,[")
BEFORE_SIGN = frozenset("=:(,[{+-*/%<>|&^~@") | {"**", "//", "==", "!=", "<=", ">=", "->", ":=", "<<", ">>"}
BEFORE_SIGN |= {"return", "in", "and", "or", "not", "if", "else", "lambda", "yield", "+=", "-=", "*=", "/="}


def read(name: str, text: str) -> list[Spot]:
    """All the spots of a file, in the order in which they stand."""
    if name.endswith(".json"):
        return same_kind(_json(text))
    spots = _python(text) if name.endswith(".py") else _text(text)
    return same_kind(_lines_as_tables(text, heed_comments(text, spots)))


def _json(text: str) -> list[Spot]:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return []
    found: list[tuple[tuple[str | int, ...], Spot]] = []
    path: list[str | int] = []  # of the value to come; a list's own index stands last
    inside: list[str] = []
    key = ""
    for mark in JSON_MARKS.finditer(text):
        word = mark.group()
        if word in "[{":
            inside.append(word)
            path.append(0 if word == "[" else "")
        elif word in "]}":
            inside.pop()
            path.pop()
        elif word == "," and inside and inside[-1] == "[":
            path[-1] = int(path[-1]) + 1
        elif word == ":":
            path[-1] = key
        elif word[0] == '"':
            key = word
        elif word in ("true", "false"):
            value = float(word == "true")
            where = (mark.start(), mark.end())
            spot = Spot(start=where[0], end=where[1], kind=Kind.CHOICE, value=value, words=("false", "true"))
            found.append((tuple(path), spot))
        elif word[0] in "-0123456789":
            literal = number(word, mark.start())
            if literal is not None:
                found.append((tuple(path), literal))
    lengths = Counter(place[:-1] for place, _ in found if place and isinstance(place[-1], int))
    return [_placed(place, spot, lengths) for place, spot in found]


def _placed(path: tuple[str | int, ...], spot: Spot, lengths: Counter[tuple[str | int, ...]]) -> Spot:
    """The column is the path with its first index left open; the row is the item of that outermost list.

    Lists of numbers that stand side by side and are equally long are columns of one table.
    """
    at = next((k for k, part in enumerate(path) if isinstance(part, int)), None)
    if at is None:
        name = _join(path)
        return replace(spot, column=name, row=name, name=_pretty(path))
    column = _join((*path[:at], "*", *path[at + 1 :]))
    if at == len(path) - 1:
        row = _join((*path[: at - 1], f"#{lengths[path[:-1]]}", path[at]))
        return replace(spot, column=column, row=row, name=_pretty(path))
    return replace(spot, column=column, row=_join(path[: at + 1]), name=_pretty(path))


def _join(path: tuple[str | int, ...]) -> str:
    return "/".join(map(str, path))


def _pretty(path: tuple[str | int, ...]) -> str:
    """`rows[7].x`."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part.strip(chr(34))}" for part in path]
    return "".join(parts).lstrip(".")


def _python(text: str) -> list[Spot]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    spots: list[Spot] = []
    shown = [t for t in tokens if t.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)]
    for k, token in enumerate(shown):
        before = shown[k - 1].string if k else "\n"
        start = starts[token.start[0] - 1] + token.start[1]
        if token.type == tokenize.NUMBER:
            signed = before in ("-", "+") and (k < 2 or _no_operand(shown[k - 2]))
            if signed:
                start = starts[shown[k - 1].start[0] - 1] + shown[k - 1].start[1]
            end = starts[token.end[0] - 1] + token.end[1]
            literal = number(text[start:end], start)
            if literal is not None:
                spots.append(literal)
        elif token.string in BOOLEANS and before in BEFORE_BOOLEAN:
            value = float(token.string == "True")
            spots.append(
                Spot(start=start, end=start + len(token.string), kind=Kind.CHOICE, value=value, words=BOOLEANS)
            )
    return spots


def _no_operand(token: tokenize.TokenInfo) -> bool:
    return token.type == tokenize.NEWLINE or token.string in BEFORE_SIGN


def _text(text: str) -> list[Spot]:
    hidden = [(m.start(), m.end()) for m in QUOTED_OR_COMMENT.finditer(text)]
    spots: list[Spot] = []
    next_hidden = 0
    for match in TEXT_NUMBER.finditer(text):
        while next_hidden < len(hidden) and hidden[next_hidden][1] <= match.start():
            next_hidden += 1
        if next_hidden < len(hidden) and hidden[next_hidden][0] <= match.start():
            continue
        literal = None if LEADING_ZERO.match(match.group()) else number(match.group(), match.start())
        if literal is not None:
            spots.append(literal)
    return spots


def _lines_as_tables(text: str, spots: list[Spot]) -> list[Spot]:
    """Give rows and columns to the spots of lines: a run of lines of one shape is a table, a lone line a column."""
    lines: list[tuple[int, str, list[Spot]]] = []
    begin = 0
    for index, line in enumerate(text.splitlines(keepends=True)):
        here = [spot for spot in spots if begin <= spot.start < begin + len(line)]
        lines.append((index, _shape(line, begin, here), here))
        begin += len(line)
    out: list[Spot] = []
    for _, run in groupby(lines, key=lambda entry: entry[1]):
        table = [(index, here) for index, _, here in run]
        for index, here in table:
            alone = len(table) == 1
            for k, spot in enumerate(here):
                column = f"line {table[0][0]}" if alone else f"line {table[0][0]}/{k}"
                row = f"line {index}/{k}" if alone else f"line {index}"
                name = f"line {index + 1}" + (f", number {k + 1}" if len(here) > 1 else "")
                out.append(replace(spot, column=column, row=row, name=name))
    return out


def _shape(line: str, begin: int, spots: list[Spot]) -> str:
    """The line with its spots cut out and its blanks ignored."""
    pieces, at = [], 0
    for spot in spots:
        pieces.append(line[at : spot.start - begin])
        at = spot.end - begin
    pieces.append(line[at:])
    return "#".join("".join(piece.split()) for piece in pieces).rstrip(",")
