"""The strict grader: the error of the pipeline's predictions on rows that agents never see.

The pipeline runs in a sealed process that gets the columns alone and gives back an array; the targets stay here.
"""

import csv
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from coral.grader import Array, Result, run_candidate


def grade(workspace: Path, private: Path, args: Mapping[str, str]) -> Result:
    """The root mean square error on `args["split"]`: validation for attempts, test for the hold-out."""
    with (private / f"{args['split']}.csv").open(newline="", encoding="utf-8") as file:
        data = np.array([[float(value) for value in row] for row in list(csv.reader(file))[1:]])
    rows, target = data[:, :-1], data[:, -1]
    answer = run_candidate(workspace, "pipeline.py:predict", rows, returns=Array((len(rows),)), seconds=60)
    errors = np.abs(answer.value - target)
    score = math.sqrt(math.fsum(errors**2) / len(errors)) if errors.max() < 1e9 else float(errors.max())
    return Result(
        round(score, 9),  # libraries may differ in the last digits from machine to machine
        metrics={"median_error": round(float(np.median(errors)), 4), "seconds": round(answer.seconds, 2)},
        feedback=f"a tenth of the errors is above {np.quantile(errors, 0.9):.2f}",
    )
