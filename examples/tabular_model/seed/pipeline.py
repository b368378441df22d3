"""The pipeline: kernel ridge regression on train.csv. `scales` weighs the columns, `ridge` smooths."""

import json
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def predict(rows: np.ndarray) -> np.ndarray:
    """What the grader calls: a prediction for each row of ten numbers."""
    data = np.loadtxt(HERE / "train.csv", delimiter=",", skiprows=1)  # fixed
    return fitted(data[:, :-1], data[:, -1], rows)  # fixed


def fitted(known: np.ndarray, target: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Predictions for `rows` by what is known of other rows."""
    settings = json.loads((HERE / "settings.json").read_text())
    scales, ridge = np.array(settings["scales"]), abs(settings["ridge"])
    middle = target.mean()
    weights = np.linalg.solve(kernel(known, known, scales) + ridge * np.eye(len(known)), target - middle)
    return middle + kernel(rows, known, scales) @ weights


def kernel(one: np.ndarray, two: np.ndarray, scales: np.ndarray) -> np.ndarray:
    one, two = one * scales, two * scales
    squares = (one**2).sum(1)[:, None] + (two**2).sum(1)[None] - 2 * one @ two.T  # fixed
    return np.exp(-squares)
