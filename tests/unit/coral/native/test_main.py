"""The arguments of the process."""

import pytest

from coral.native.main import arguments


def test_arguments_have_defaults_for_a_task_without_a_check():
    args = arguments(["--session", "s", "--state", "x"])
    assert (args.resume, args.editable, args.check, args.direction, args.seed) == (False, ["**/*"], "", "maximize", 0)
    with pytest.raises(SystemExit):
        arguments(["--session", "s"])
