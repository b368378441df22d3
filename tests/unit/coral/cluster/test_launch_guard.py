"""Which program the guard of a launch starts on a node."""

from pathlib import Path

import pytest

from coral.cluster.launch_guard import _program


@pytest.mark.parametrize("mode", [0o700, 0o600, None])
def test_a_program_is_found_at_its_path_or_else_by_its_name(tmp_path: Path, mode: int | None) -> None:
    """A path that the node's user may not use counts as one that is not there."""
    there, by_name = tmp_path / "home" / "agent", tmp_path / "bin" / "agent"
    for path in (there, by_name):
        path.parent.mkdir()
        path.touch(0o700)
    if mode is None:
        there.unlink()
    else:
        there.chmod(mode)
    order = {"argv": [str(there), "-p"], "env": {"PATH": str(by_name.parent)}}
    assert _program(order) == str(there if mode == 0o700 else by_name)
    by_name.unlink()
    assert _program(order) == str(there)
