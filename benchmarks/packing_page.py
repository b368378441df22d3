"""Shows the curves of the packing runs: a table of some moments, and a picture in text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from benchmarks import table
from benchmarks.figure import Check, median
from benchmarks.results import Result

MOMENTS = (15, 30, 60, 120)
LABELS = {
    "shared": "4 agents, sharing what they learn",
    "apart": "4 agents, each for itself",
    "alone": "1 agent",
}
LETTERS = {"shared": "s", "apart": "a", "alone": "1"}
BEST_KNOWN = 2.6359830855
LEAST, AIM = 2.54, 2.60
WIDTH, GAPS = 72, (1.0, 1e-6)  # columns; the widest and the narrowest gap that the picture shows
STEPS = 3  # lines for a factor of ten

Runs = Mapping[str, Sequence[Result]]


def checks(runs: Runs) -> list[Check]:
    if "shared" not in runs:
        return []
    last = _moments(runs)[-1]
    reached = median([at(run, last) for run in runs["shared"]])
    targets = (_reached(reached, LEAST), _reached(reached, AIM))
    return [
        Check(f"circle packing, {LABELS['shared']}", f"{reached:.5f} after {last} s", targets, reached >= AIM, _WHY)
    ]


def section(runs: Runs) -> list[str]:
    lines = ["## Packing circles", "", _ABOUT, "", *_table(runs), "", *_picture(runs), "", *_what_was_done(runs)]
    busiest = max((run for results in runs.values() for run in results), key=lambda run: run.machine.load)
    return [*lines, "", table.origin(busiest, "packing")]


def at(run: Result, moment: float) -> float:
    """Return the best score of a run until a moment, in seconds."""
    scores = [
        score for second, score in zip(run.series["seconds"], run.series["best"], strict=True) if second <= moment
    ]
    return scores[-1]


_ABOUT = f"""26 circles in the unit square, maximise the sum of their radii ([the
example](../examples/circle_packing/README.md)): native agents with brain `search`, no model. The best packing
known has {BEST_KNOWN}; a five by five grid with one more circle in a gap has 2.54. Each run starts from the
example's seed (1.82) with its circles moved a little, the same three ways in all settings, and is timed by its
own clock from the moment the supervisor has taken over."""

_WHY = "This is a search without a model; the table shows how far apart its runs lie."


def _moments(runs: Runs) -> list[int]:
    longest = min(run.settings["seconds"] for results in runs.values() for run in results)
    return [moment for moment in MOMENTS if moment <= float(longest)] or [int(float(longest))]


def _table(runs: Runs) -> list[str]:
    moments = _moments(runs)
    lines = ["| median (least to most) | " + " | ".join(f"{moment} s" for moment in moments) + " | runs |"]
    lines.append("|---|" + "---:|" * (len(moments) + 1))
    for name, results in runs.items():
        cells = [_cell([at(run, moment) for run in results]) for moment in moments]
        lines.append(f"| {LABELS[name]} | " + " | ".join(cells) + f" | {len(results)} |")
    return lines


def _cell(scores: Sequence[float]) -> str:
    return f"{median(scores):.5f} ({min(scores):.5f} to {max(scores):.5f})"


def _reached(score: float, wanted: float) -> str:
    return f"{wanted:.2f}: met" if score >= wanted else f"{wanted:.2f}: **missed by {wanted - score:.4f}**"


def _picture(runs: Runs) -> list[str]:
    """Draw the median gaps to the best known packing over time, on a logarithmic scale: most of the time goes into the
    last thousandths."""
    longest = min(float(run.settings["seconds"]) for results in runs.values() for run in results)
    rows = math.ceil(math.log10(GAPS[0] / GAPS[1]) * STEPS) + 1
    grid = [[" "] * WIDTH for _ in range(rows)]
    for name, results in runs.items():
        for column in range(WIDTH):
            score = median([at(run, longest * column / (WIDTH - 1)) for run in results])
            row = _row(BEST_KNOWN - score, rows)
            grid[row][column] = LETTERS[name] if grid[row][column] == " " else "*"
    lines = ["```text", "sum of radii (the scale is logarithmic in the gap to the best known)"]
    for row, cells in enumerate(grid):
        label = f"{BEST_KNOWN - GAPS[0] / 10 ** (row / STEPS):8.6f}" if row % STEPS == 0 else " " * 8
        lines.append(f"{label} |{''.join(cells)}".rstrip())
    lines.append(" " * 9 + "+" + "-" * (WIDTH - len(f"{longest:g} s") - 1) + f" {longest:g} s")
    said = ", ".join(f"{LETTERS[name]} = {LABELS[name]}" for name in runs)
    return [*lines, f"{said}, * = several (medians)", "```"]


def _row(gap: float, rows: int) -> int:
    gap = min(max(gap, GAPS[1]), GAPS[0])
    return min(rows - 1, round(math.log10(GAPS[0] / gap) * STEPS))


def _what_was_done(runs: Runs) -> list[str]:
    lines = ["| median per run | attempts | notes | skills |", "|---|---:|---:|---:|"]
    for name, results in runs.items():
        counts = [median([float(run.settings[what]) for run in results]) for what in ("attempts", "notes", "skills")]
        lines.append(f"| {LABELS[name]} | " + " | ".join(f"{count:g}" for count in counts) + " |")
    return lines
