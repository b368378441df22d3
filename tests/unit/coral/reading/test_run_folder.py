"""A run is named by its folder, a folder in it, or either end of its name."""

from pathlib import Path

import pytest

from coral.errors import CoralError
from coral.reading.run_folder import named
from workspace.layout import Layout


def test_a_folder_a_name_or_an_end_of_it_names_a_run(layout: Layout) -> None:
    name = layout.root.name
    for known in (str(layout.root), str(layout.logs_of_all), name, name[:6], name[-3:], f"toy/{name}"):
        assert named(known, None).root.resolve() == layout.root.resolve(), known


@pytest.mark.parametrize(("name", "message"), [(".", "is not the folder of one"), ("nothing", "named 'nothing'")])
def test_what_names_no_run_is_refused(layout: Layout, tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(CoralError, match=message) as refused:
        named(name, None)
    assert "coral runs" in refused.value.hint
