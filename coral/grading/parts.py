"""The files of Coral that run a Python grader where Coral is not installed: in its own environment, or on a node."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
PARTS: tuple[str, ...] = (
    "__init__.py",
    "types.py",
    "grading/__init__.py",
    "grading/runner.py",
    "grading/finite_score.py",
    "grading/foreign_code.py",
    "grading/handover.py",
    *(f"grader/{path.name}" for path in sorted((PACKAGE / "grader").glob("*.py"))),
)
