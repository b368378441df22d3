"""The share of the tests that pass. The tests in hidden/ are the grader's own copy: agents never change them.

pytest loads nothing of the checkout but what the tests import: no settings, no plug-ins, no conftest.py. What the tests
import runs in this process all the same, so that the channel of such a score is open: docs/trust.md of Coral says how
tests can call the candidate by `run_candidate` instead.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from coral.grader import Fail, Result

SHOWN = 5000  # characters of feedback


class PassedTests:
    """Counts the tests. A file that cannot be imported counts with all tests that it defines."""

    def __init__(self, workspace: Path) -> None:
        self.workspace = workspace
        self.passed = self.total = 0
        self.failures: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Not before: pytest looks for plug-ins on the path."""
        sys.path[:0] = [str(self.workspace), str(self.workspace / "src")]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            path = Path(str(report.fspath))
            self.total += max(1, path.read_text().count("def test_")) if path.is_file() else 1
            self.failures.append(f"{path.name}: {str(report.longrepr).strip().splitlines()[-1]}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and report.failed):
            self.total += not report.skipped
            self.passed += report.passed
            if report.failed:
                self.failures.append(f"{report.nodeid}: {str(report.longrepr).strip().splitlines()[-1]}")


def grade(workspace: Path, private: Path) -> Result:
    os.chdir(workspace)
    tests, counted = private / "hidden", PassedTests(workspace)
    options = [f"--rootdir={tests}", f"--confcutdir={tests}", "-c", os.devnull, "-p", "no:cacheprovider", "-q"]
    options += ["--import-mode=importlib", "--continue-on-collection-errors"]
    pytest.main([*options, str(tests)], plugins=[counted])
    if not counted.total:
        raise Fail("no test was run")
    text = "\n".join(counted.failures)[:SHOWN]
    return Result(counted.passed / counted.total, {"passed": counted.passed, "tests": counted.total}, text)
