"""What the documentation site is built from; the build itself, which checks every link, is `make docs`."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
from pages import ROOT

SITE = runpy.run_path(str(ROOT / "docs/site/prepare.py"))


def test_the_pages_are_written_with_links_as_the_site_has_them(tmp_path: Path) -> None:
    SITE["main"](tmp_path)
    pages = tmp_path / "pages"
    front = (pages / "index.md").read_text()
    assert "](docs/" not in front
    assert "](trust.md" in front
    assert "](images/run.svg)" in front
    assert (pages / "images/run.svg").is_file()
    assert "](../architecture.md)" in (pages / "repository/CONTRIBUTING.md").read_text()
    assert "| `direction` | `maximize` or `minimize` |" in (pages / "task-yaml.md").read_text()
    assert (pages / "repository/coral/runtimes/limits.yaml").is_file()
    assert tomllib.loads((tmp_path / "zensical.toml").read_text())["project"]["docs_dir"] == "pages"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-o"], ["a", "b"]])
def test_an_argument_that_is_no_folder_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="cannot write the site: give one folder"):
        SITE["folder"](arguments)
    assert SITE["folder"](["build"]) == Path("build")


def test_a_block_of_code_is_left_as_it_is() -> None:
    text = "[a](b.md)\n\n```python\nx = y[0](z)\n```\n[c](d.md)\n"
    changed = SITE["_outside_fences"](text, lambda part: part.replace("](", "](../"))
    assert changed == "[a](../b.md)\n\n```python\nx = y[0](z)\n```\n[c](../d.md)\n"


def test_a_page_that_is_named_or_left_out_by_mistake_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = tmp_path / "zensical.toml"
    settings.write_text('[project]\nnav = ["index.md", {"A" = [{"B" = "gone.md"}]}]\n')
    monkeypatch.setitem(SITE["unreachable"].__globals__, "SETTINGS", settings)
    monkeypatch.setitem(SITE["unreachable"].__globals__, "_linked", lambda path: ["docs/trust.md"])
    found = list(SITE["unreachable"](["README.md", "docs/trust.md", "docs/agents.md"]))
    assert found == [
        "zensical.toml names gone.md, which is not there",
        "nothing leads to agents.md: add it to zensical.toml",
    ]


def test_the_picture_is_of_a_real_run_and_names_no_other_machine() -> None:
    picture = (ROOT / "docs/images/run.svg").read_text(encoding="utf-8")
    assert "circle_packing" in picture
    assert "agent-4" in picture
    assert re.findall(r"url\((?!#)|href=|@import|@font-face|/home/|/tmp/|/root/", picture) == []
