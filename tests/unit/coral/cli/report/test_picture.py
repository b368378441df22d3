"""`coral plot`: pictures of a run's curve, by ourselves or by matplotlib."""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sample import make_run

from coral.cli.report import picture as module
from coral.extras import PACKAGES
from workspace.layout import Layout

Shown = Callable[..., str]


def test_an_svg_needs_no_library(layout: Layout, shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert shown("plot") == f"curve.svg: the score of {layout.root.name} over time"
    root = ElementTree.fromstring(Path("curve.svg").read_bytes())
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    said = shown("plot", "-o", "curve.png", code=1)
    assert "cannot draw a png: matplotlib is not installed" in said
    assert PACKAGES["plot"][0] in said


@pytest.fixture(scope="module")
def fonts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Matplotlib lists the fonts of a machine where it has not yet, by a process, and keeps the list."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(tmp_path_factory.mktemp("matplotlib")))
        with warnings.catch_warnings(action="ignore"):
            import_module("matplotlib.font_manager")
        yield


@pytest.mark.usefixtures("fonts")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of matplotlib's own
@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF")])
def test_other_formats_are_drawn_by_matplotlib(name: str, begins: bytes, layout: Layout, shown: Shown) -> None:
    shown("plot", "-o", name, "--gap")
    assert Path(name).read_bytes().startswith(begins)


def test_what_cannot_be_drawn(layout: Layout, shown: Shown, tmp_path: Path) -> None:
    assert "cannot draw a picture of the kind '.txt'" in shown("plot", "-o", "a.txt", code=1)
    Path("a.svg").write_text("mine")
    assert shown("plot", "-o", "a.svg", code=1) == (
        "coral: cannot write a.svg: it exists\n  name another file, or add --force"
    )
    shown("plot", "-o", "a.svg", "--force")
    assert Path("a.svg").read_text() != "mine"
    assert "cannot write no/a.svg: No such file or directory" in shown("plot", "-o", "no/a.svg", code=1)
    only_seed = make_run(tmp_path / "more", scores=(1.0,))
    assert "nothing has beaten the seed" in shown("plot", str(only_seed.root), "--gap", code=1)
    only_first = make_run(tmp_path / "more", scores=(None, 1.0))
    assert "nothing has beaten #1, so that" in shown("plot", str(only_first.root), "--gap", code=1)
    for path in only_seed.attempts.glob("*.json"):
        path.unlink()
    assert "there is no score yet" in shown("plot", str(only_seed.root), code=1)
