"""What is in an archive comes out as it was, and nothing outside of the folder is written."""

import os
import stat
from pathlib import Path

import pytest

from coral.cluster.archive import Entry, entries, pack, read, unpack

FILE, FOLDER, LINK = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755, stat.S_IFLNK | 0o777


def entry(name: str, mode: int = FILE, content: bytes = b"x") -> Entry:
    return Entry(name, mode, memoryview(content))


def out(tmp_path: Path, *found: Entry) -> Path:
    (tmp_path / "out").mkdir()
    unpack(found, tmp_path / "out")
    return tmp_path / "out"


def test_names_modes_links_and_contents_are_kept(tmp_path: Path) -> None:
    strange = os.fsdecode(b"caf\xe9 \n")
    (tmp_path / "run.sh").write_bytes(b"\0\xff")
    (tmp_path / "run.sh").chmod(0o751)
    (tmp_path / strange).symlink_to(os.fsdecode(b"/\xe9"))
    os.link(tmp_path / "run.sh", tmp_path / "twice")
    (tmp_path / "slashes").symlink_to(".//folder/")
    os.mkfifo(tmp_path / "pipe")
    names = {"p": tmp_path, "p/run.sh": tmp_path / "run.sh", "p/twice": tmp_path / "twice"}
    names |= {f"p/{strange}": tmp_path / strange, "p/pipe": tmp_path / "pipe", "p/slashes": tmp_path / "slashes"}
    made = out(tmp_path, *entries(pack(read(names.items())))) / "p"
    assert {path.name for path in made.iterdir()} == {"run.sh", "twice", "slashes", strange}
    assert ((made / "run.sh").read_bytes(), (made / "twice").read_bytes()) == (b"\0\xff", b"\0\xff")
    assert (made / "run.sh").stat().st_mode & 0o7777 == 0o751
    assert os.fsencode((made / strange).readlink()) == b"/\xe9"
    assert os.readlink(made / "slashes") == ".//folder/"  # noqa: PTH115 - a Path would change it


@pytest.mark.parametrize("kept", [0, 7, 20, -1])
def test_an_archive_that_was_cut_is_refused(kept: int) -> None:
    data = pack([entry("a", content=b"12")])
    assert [bytes(found.content) for found in entries(data)] == [b"12"]
    with pytest.raises(ValueError, match=r"has \d+$|JSON|Expecting|Unterminated"):
        entries(data[:kept])


def test_a_folder_that_may_not_be_written_gets_its_files(tmp_path: Path) -> None:
    closed = entry("a", stat.S_IFDIR | 0o555, b"")
    made = out(tmp_path, entry("a/b/c"), entry("a/b", FOLDER, b""), closed)
    assert (made / "a" / "b" / "c").read_bytes() == b"x"
    assert (made / "a").stat().st_mode & 0o777 == 0o555


@pytest.mark.parametrize("name", ["/abs", "../up", "a/../../up", ".."])
def test_a_name_that_leads_outside_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"the archive has"):
        out(tmp_path, entry("a"), entry(name))
    assert not any((tmp_path / "out").iterdir())


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    link = entry("a", LINK, bytes(tmp_path / "outside"))
    with pytest.raises(FileNotFoundError):
        out(tmp_path, link, entry("a/x"))
    assert not any((tmp_path / "outside").iterdir())
