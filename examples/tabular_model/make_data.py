"""Makes the data of this example: `python make_data.py` writes train, validation and test, the same ones each time.

Ten columns; the target follows five of them (Friedman, "Multivariate adaptive regression splines", 1991, section 4.3),
with normal noise of deviation 1, so that no model has a smaller error for long.
"""

import csv
from math import pi, sin
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
COLUMNS = 10
FILES = {"seed/train.csv": 150, "validation.csv": 120, "test.csv": 400}


def rows(random: Random, count: int) -> list[list[str]]:
    found = []
    for _ in range(count):
        x = [random.random() for _ in range(COLUMNS)]
        y = 10 * sin(pi * x[0] * x[3]) + 20 * (x[5] - 0.5) ** 2 + 10 * x[6] + 5 * x[8] + random.gauss(0, 1)
        found.append([f"{value:.4f}" for value in [*x, y]])
    return found


def make(folder: Path) -> None:
    for number, (name, count) in enumerate(FILES.items()):
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*(f"x{column}" for column in range(COLUMNS)), "y"])
            writer.writerows(rows(Random(1991 + number), count))


if __name__ == "__main__":
    make(HERE)
