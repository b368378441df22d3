"""The public check: whether `nearest.py` is right on words made up here, and how much faster it is than at the start.

It runs your code in this process and measures once; the grader does neither. `python check.py` prints the result.
"""

from __future__ import annotations

import runpy
import sys
import time
from collections.abc import Callable
from math import log2
from pathlib import Path
from random import Random

Nearest = Callable[[list[str], list[str]], list[int]]


def check(folder: str) -> dict[str, float]:
    """Return `{"score": log2 of how much faster}`. Raises ValueError where an answer is wrong."""
    nearest: Nearest = runpy.run_path(str(Path(folder, "nearest.py")))["nearest"]
    words, queries = made_up(Random(1), 400, 8)
    expected, slow = timed(plain, words, queries)
    found, fast = timed(nearest, words, queries)
    wrong = [query for query, a, b in zip(queries, found, expected, strict=True) if a != b]
    if wrong:
        raise ValueError(f"wrong for {wrong[0]!r}")
    return {"score": log2(slow / fast)}


def made_up(random: Random, words: int, queries: int) -> tuple[list[str], list[str]]:
    """Words of syllables, and queries that are words with a few letters changed."""
    syllables = [consonant + vowel for consonant in "bdfklmnprst" for vowel in "aeiou"]
    known = ["".join(random.choices(syllables, k=random.randint(1, 6))) for _ in range(words)]
    asked = [list(random.choice(known)) for _ in range(queries)]
    for letters in asked:
        for _ in range(random.randint(0, 4)):
            place = random.randint(0, len(letters))
            letters[place : place + random.randint(0, 1)] = random.choice(["", "x", "é", "an"])
    return known, ["".join(letters) for letters in asked]


def timed(nearest: Nearest, words: list[str], queries: list[str]) -> tuple[list[int], float]:
    began = time.perf_counter()
    return nearest(words, queries), time.perf_counter() - began


def plain(words: list[str], queries: list[str]) -> list[int]:
    """As the seed does it."""
    return [min(range(len(words)), key=lambda place: distance(words[place], query)) for query in queries]


def distance(one: str, two: str) -> int:
    row = list(range(len(two) + 1))
    for i, a in enumerate(one):
        before, row[0] = row[0], i + 1
        for j, b in enumerate(two):
            before, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, before + (a != b))
    return row[-1]


if __name__ == "__main__":
    score = check(sys.argv[1] if len(sys.argv) > 1 else ".")["score"]
    print(f"right, and {2**score:.2f} times as fast as the seed (score {score:.3f})")
