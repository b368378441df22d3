"""`coral report`: where the file goes, and that no other is lost."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sample import make_run, write_status


def test_the_file(
    operators_shell: None,
    coral: Callable[..., tuple[int, str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    layout = make_run(tmp_path / "runs")
    write_status(layout)
    code, out, _ = coral("report")
    name = f"toy-{layout.root.name}.html"
    assert (code, out.split(",")[:2]) == (0, [f"{name}: toy", " 4 attempts"])
    assert Path(name).read_text(encoding="utf-8").startswith("<!doctype html>\n<html")
    assert coral("report")[0] == 0, "its own name is written again"
    code, out, _ = coral("report", layout.root.name, "-o", "mine.html", "--json")
    assert json.loads(out) == {"run": layout.root.name, "file": "mine.html", "bytes": Path("mine.html").stat().st_size}
    code, _, err = coral("report", "-o", "mine.html")
    assert code == 1
    assert err == "coral: cannot write mine.html: it exists\n  name another file, or add --force\n"
    assert coral("report", "-o", "mine.html", "--force")[0] == 0
    assert not list(tmp_path.glob(".*.partial"))
