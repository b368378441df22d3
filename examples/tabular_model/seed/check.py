"""The public check: the error in five-fold cross-validation on train.csv. `python check.py` prints it."""

import sys
from pathlib import Path

import numpy as np

FOLDS = 5


def check(folder: str = ".") -> float:
    """The root mean square error on rows that were left out."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from pipeline import fitted

    data = np.loadtxt(Path(folder, "train.csv"), delimiter=",", skiprows=1)
    fold = np.arange(len(data)) % FOLDS
    squares = np.empty(len(data))
    for number in range(FOLDS):
        known, rest = data[fold != number], data[fold == number]
        squares[fold == number] = (fitted(known[:, :-1], known[:, -1], rest[:, :-1]) - rest[:, -1]) ** 2
    return float(np.sqrt(squares.mean()))


if __name__ == "__main__":
    print(f"error in cross-validation: {check(str(Path.cwd())):.4f}")
