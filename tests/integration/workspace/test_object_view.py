"""The view of a clone's objects leads into that clone alone."""

from __future__ import annotations

import shutil
from pathlib import Path

from clones import clone, commit, layout, template

from workspace import intake
from workspace.layout import Layout

__all__ = ["clone", "layout", "template"]  # fixtures


def test_the_view_of_a_clone_is_put_right_where_it_leads_elsewhere(layout: Layout, clone: Path, tmp_path: Path) -> None:
    intake.take_in(layout.hub, clone, commit(clone, "one"), 1)
    view, mine = layout.hub / "views" / "agent-1", commit(clone, "two")
    shutil.rmtree(view)
    view.mkdir()
    (view / mine[:2]).symlink_to(tmp_path)
    (view / "pack").mkdir()
    (view / "info").mkdir()
    (view / "info" / "alternates").write_text("/nowhere\n")
    assert intake.take_in(layout.hub, clone, mine, 2).commit == mine
    assert {path.name for path in view.iterdir()} == {"pack"} | {
        path.name for path in (clone / ".git" / "objects").iterdir() if len(path.name) == 2
    }
    assert all(path.resolve().parent == (clone / ".git" / "objects").resolve() for path in view.iterdir())


def test_a_copied_run_reads_its_own_clones(layout: Layout, clone: Path, tmp_path: Path) -> None:
    intake.take_in(layout.hub, clone, commit(clone, "one"), 1)
    copy = Layout(tmp_path / "copy")
    shutil.copytree(layout.root, copy.root, symlinks=True)
    mine = commit(copy.clone("agent-1"), "two")
    intake.take_in(copy.hub, copy.clone("agent-1"), mine, 2)
    shutil.rmtree(layout.root)
    again = commit(copy.clone("agent-1"), "three")
    assert intake.take_in(copy.hub, copy.clone("agent-1"), again, 3).parent == mine
