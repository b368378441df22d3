"""The strict grader: how much faster the candidate is than the seed, measured side by side, on words nobody has seen.

Both run in a sealed process of their own, one right after the other, on the same words: what slows the machine down
slows both. The words are new in each grade, so that no answer can be learnt; each answer is compared with the seed's.
"""

from collections.abc import Mapping
from math import log2
from pathlib import Path
from random import SystemRandom
from statistics import median

from coral.grader import Fail, Result, progress, run_candidate

SYLLABLES = [consonant + vowel for consonant in "bcdfghklmnprstvw" for vowel in ("a", "e", "i", "o", "u", "ai")]
ODD = ["", "a", "é", "ß", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "naïve", "x x", "tab\tbed", "e\u0301"]
PATIENCE = 5.0  # times the seed's seconds, after which a candidate has failed
LEAST = 10.0  # seconds that it has at any rate

Round = tuple[list[str], list[str]]


def grade(workspace: Path, private: Path, args: Mapping[str, int]) -> Result:
    """The median over the rounds of log2(seconds of the seed / seconds of the candidate): 1 is twice as fast."""
    found, rounds = [], args["rounds"]
    for number in range(rounds):
        progress(number / rounds, f"round {number + 1} of {rounds}")
        found.append(measured(workspace, private, made_up(args["words"], args["queries"])))
    gains = [log2(slow / fast) for slow, fast in found]
    return Result(
        median(gains),
        metrics={
            "times_as_fast": round(2 ** median(gains), 3),
            "seconds": round(median(fast for _, fast in found), 3),
            "seconds_of_the_seed": round(median(slow for slow, _ in found), 3),
        },
        feedback="rounds: " + ", ".join(f"{2**gain:.2f} times as fast" for gain in gains),
    )


def measured(workspace: Path, private: Path, asked: Round) -> tuple[float, float]:
    """Seconds of the seed and of the candidate, the start of a process among them; Fail where an answer is wrong."""
    words, queries = asked
    known = run_candidate(private, "reference.py:nearest", words, queries, returns=list, seconds=300)
    limit = max(LEAST, PATIENCE * known.seconds)
    answer = run_candidate(workspace, "nearest.py:nearest", words, queries, returns=list, seconds=limit)
    if len(answer.value) != len(queries):
        raise Fail(f"nearest.py gives {len(answer.value)} answers to {len(queries)} queries")
    wrong = [place for place, (a, b) in enumerate(zip(answer.value, known.value, strict=True)) if a != b]
    if wrong:
        query, right = queries[wrong[0]], words[known.value[wrong[0]]]
        raise Fail(
            f"{len(wrong)} of {len(queries)} answers are wrong: the first word nearest to {query!r} is {right!r}"
        )
    return known.seconds, answer.seconds


def made_up(words: int, queries: int) -> Round:
    """Words and queries: words of syllables with letters changed, and a few odd ones. Of the words these stand twice,
    and the first is right."""
    random = SystemRandom()
    known = ["".join(random.choices(SYLLABLES, k=random.randint(1, 6))) for _ in range(words)]
    asked = [changed(random.choice(known), random) for _ in range(queries)]
    for odd in ODD:
        for _ in range(2):
            known.insert(random.randrange(len(known)), odd)
        asked.insert(random.randrange(len(asked)), random.choice([odd, changed(odd, random)]))
    return known, [*asked, random.choice(ODD)]


def changed(word: str, random: SystemRandom) -> str:
    letters = list(word)
    for _ in range(random.randint(0, 4)):
        place = random.randint(0, len(letters))
        letters[place : place + random.randint(0, 1)] = random.choice(["", "x", "é", "an"])
    return "".join(letters)
