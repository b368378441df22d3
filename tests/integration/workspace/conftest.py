"""A run without agents, and the clone of its one agent; a module may have a template of its own."""

import shutil
from pathlib import Path

import pytest
from clones import make_run

from workspace.layout import Layout


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Layout:
    """A run to copy: making one takes a dozen processes."""
    return make_run(tmp_path_factory.mktemp("template"), {"a.txt": "seed\n"})


@pytest.fixture
def layout(template: Layout, tmp_path) -> Layout:
    root = tmp_path / "runs" / "task" / template.root.name
    shutil.copytree(template.root, root, symlinks=True)
    return Layout(root)


@pytest.fixture
def clone(layout: Layout) -> Path:
    return layout.clone("agent-1")
