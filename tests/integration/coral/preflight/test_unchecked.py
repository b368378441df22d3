"""A check before a start that cannot be made is said; a mistake of ours in it is none of that."""

import subprocess

import pytest

from coral.preflight.unchecked import attempted
from workspace.errors import GitError


@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), GitError("no git"), subprocess.TimeoutExpired("x", 1)]
)
def test_what_cannot_be_checked_is_said(error: Exception) -> None:
    def fail() -> str:
        raise error

    assert attempted("the seed", fail) == f"the seed cannot be checked: {error}; the run starts all the same"


def test_what_is_found_is_said_and_a_mistake_of_ours_is_not_hidden() -> None:
    assert attempted("the seed", lambda: "it has changed") == "it has changed"
    with pytest.raises(AssertionError):
        attempted("the seed", _assert)


def _assert() -> str:
    raise AssertionError
