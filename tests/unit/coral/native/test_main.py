"""The arguments of the process, and what its first prompt is remembered for."""

import pytest

from coral.native.main import LONGEST_OBJECTIVE, _objective, arguments


def test_arguments_have_defaults_for_a_task_without_a_check():
    args = arguments(["--session", "s", "--state", "x"])
    assert (args.resume, args.editable, args.check, args.direction, args.seed) == (False, ["**/*"], "", "maximize", 0)
    with pytest.raises(SystemExit):
        arguments(["--session", "s"])


def test_the_objective_of_the_first_prompt_is_remembered():
    assert _objective("Hello\n\n## The objective\n\nPack.\n\n## Rules\n\nNone.") == "Pack."
    assert _objective("Pack.") == "Pack."
    assert len(_objective("x" * 9999)) == LONGEST_OBJECTIVE
