"""The program that restricts itself is started as it was compiled, and never as it was compiled before a change."""

import py_compile
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coral.grader import landlock
from coral.processes import restricted


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "landlock.py"
    path.write_text("print('first')\n")
    monkeypatch.setattr(landlock, "__file__", str(path))
    restricted._script.cache_clear()
    yield path
    restricted._script.cache_clear()


def script() -> Path:
    restricted._script.cache_clear()
    return Path(restricted._script())


def test_compiled_code_is_used_while_it_is_that_of_the_source(source: Path) -> None:
    assert script() == source, "nothing is compiled yet"
    py_compile.compile(str(source), doraise=True)
    assert script().suffix == ".pyc"
    line = restricted.restricted({}, ["program"])
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == "first\n"
    source.write_text("print('second')\n")
    assert script() == source
