"""The package as a whole: its README lists every module, and nothing in it knows the example."""

import re
from pathlib import Path

import coral.native

ROOT = Path(coral.native.__path__[0])
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")


def test_the_readme_lists_every_module():
    table = (ROOT / "README.md").read_text().partition("## What is where")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", table)) == {path.stem for path in MODULES}


def test_the_agent_knows_nothing_of_the_example():
    words = ("circle", "radii", "packing", "overlap", "2.63")
    for path in MODULES:
        text = path.read_text().lower()
        assert [word for word in words if re.search(rf"\b{word}s?\b", text)] == [], path
