"""Packs of the hub that somebody removes, alters or adds: they are put back, or set aside."""

from pathlib import Path

import pytest
from clones import git

from workspace import packs as packs_module
from workspace.layout import Layout
from workspace.packs import Packs


@pytest.fixture
def packs(layout: Layout) -> Packs:
    found = Packs(layout.hub, layout.hub_packs)
    assert found.restore() == []
    return found


def pack_of(layout: Layout) -> Path:
    return min((layout.hub / "objects" / "pack").glob("*.pack"))


def write_into(path: Path, text: bytes) -> None:
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.write(text)


def test_what_was_deleted_altered_or_replaced_is_put_back(layout: Layout, packs: Packs) -> None:
    pack = pack_of(layout)
    index = pack.with_suffix(".idx")
    pack.unlink()
    write_into(index, b"forged")
    assert packs.restore() == [
        (f"objects/pack/{index.name}", "was altered", "a copy"),
        (f"objects/pack/{pack.name}", "was deleted", "a copy"),
    ]
    pack.unlink()
    pack.mkdir()
    index.unlink()
    index.symlink_to("/dev/zero")
    assert [found for _, found, _ in packs.restore()] == ["was replaced", "was replaced"]
    assert git(layout.hub, "fsck", "--strict") == ""
    assert packs.restore() == []


def test_a_supervisor_finds_what_was_changed_before_it_began(layout: Layout, packs: Packs) -> None:
    pack_of(layout).unlink()
    assert [found for _, found, _ in Packs(layout.hub, layout.hub_packs).restore()] == ["was deleted"]
    write_into(pack_of(layout), b"forged")
    assert [found for _, found, _ in Packs(layout.hub, layout.hub_packs).restore()] == ["was altered"]


def test_a_large_pack_has_a_second_name(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs_module, "COPIED", 0)
    packs, pack = Packs(layout.hub, layout.hub_packs), pack_of(layout)
    assert packs.restore() == []
    assert pack.samefile(layout.hub_packs / pack.name)
    pack.unlink()
    name = f"objects/pack/{pack.name}"
    assert packs.restore() == [(name, "was deleted", "a copy")]
    write_into(pack, b"forged")
    assert packs.restore() == [(name, "was written to", "")]
    assert packs.restore() == []


def test_a_pack_that_is_added_stays_if_it_is_whole(layout: Layout, packs: Packs, tmp_path: Path) -> None:
    """Another seed comes as a pack. A false index would show other content under the ids of honest files."""
    other = tmp_path / "other.git"
    git(tmp_path, "init", "-q", "--bare", str(other))
    (tmp_path / "file").write_text("another")
    blob = git(other, "hash-object", "-w", str(tmp_path / "file"))
    folder = layout.hub / "objects" / "pack"
    name = git(other, "pack-objects", str(folder / "pack"), data=f"{blob}\n")
    added = folder / f"pack-{name}.pack"
    assert packs.restore() == []
    added.unlink()
    assert packs.restore() == [(f"objects/pack/{added.name}", "was deleted", "a copy")]
    forged = folder / "pack-0123456789012345678901234567890123456789.idx"
    forged.write_bytes(added.with_suffix(".idx").read_bytes())
    forged.with_suffix(".pack").write_bytes(pack_of_first(layout, added).read_bytes())
    assert [(item, found) for item, found, _ in packs.restore()] == [
        (f"objects/pack/{forged.stem}", "was added, with a false index")
    ]
    assert not forged.exists()
    assert git(layout.hub, "fsck", "--strict", "--no-dangling") == ""


def pack_of_first(layout: Layout, but: Path) -> Path:
    return next(path for path in (layout.hub / "objects" / "pack").glob("*.pack") if path != but)
