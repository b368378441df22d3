"""Of a checkout as little as possible is sent, and what is in it comes out as it was."""

import os
from pathlib import Path

from coral.cluster.archive import entries, pack, unpack
from coral.cluster.shipping import MOST_BASES, SMALL, Parcel, Shipping, digest


def write(folder: Path, order: tuple[str, ...]) -> Path:
    for name in order:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def checkout(folder: Path) -> bytes:
    return Shipping().candidate({"places": {"candidate": str(folder)}})


def test_neither_the_order_nor_the_time_in_which_files_are_made_matters(tmp_path: Path) -> None:
    first = write(tmp_path / "a", ("x/1.txt", "2.txt"))
    second = write(tmp_path / "b", ("2.txt", "x/1.txt"))
    os.utime(second / "2.txt", (1, 1))
    assert checkout(first) == checkout(second)
    (second / "2.txt").write_text("other")
    assert digest(checkout(first)) != digest(checkout(second))


def test_what_python_compiled_and_git_keeps_beside_the_graders_files_is_not_sent(tmp_path: Path) -> None:
    private = write(tmp_path / "private", ("grade.py", "__pycache__/x.pyc", "b/.git/HEAD"))
    _, data = Shipping().archive(private)
    assert [one.name for one in entries(data) if one.name.startswith("private/")] == ["private/b", "private/grade.py"]


def test_a_checkout_is_sent_with_all_that_its_commit_has(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", ("run.sh", "__pycache__/data.txt"))
    unpack(entries(checkout(folder)), tmp_path)
    assert (tmp_path / "candidate" / "__pycache__" / "data.txt").read_text() == "__pycache__/data.txt"


def parcel(shipping: Shipping, folder: Path, **files: bytes) -> Parcel:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return shipping.parcel({"places": {"candidate": str(folder)}})


def test_a_small_checkout_is_sent_whole(tmp_path: Path) -> None:
    sent = parcel(Shipping(), tmp_path, a=b"1")
    assert sent == Parcel(changes=checkout(tmp_path))


def test_of_a_checkout_what_differs_from_its_base_is_sent(tmp_path: Path) -> None:
    shipping, big = Shipping(), bytes(SMALL)
    first = parcel(shipping, tmp_path, a=b"1", big=big, gone=b"")
    assert (first.base, first.removed) == (checkout(tmp_path), ())
    assert first.base_sha == digest(first.base)
    (tmp_path / "gone").unlink()
    second = parcel(shipping, tmp_path, a=b"2", new=b"3")
    assert (second.base_sha, second.base, second.removed) == (first.base_sha, first.base, ("candidate/gone",))
    assert [entry.name for entry in entries(second.changes)] == ["candidate/a", "candidate/new"]
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "new").unlink()
    (tmp_path / "new").symlink_to("a")
    third = parcel(shipping, tmp_path)
    assert [(entry.name, entry.mode & 0o111, bytes(entry.content)) for entry in entries(third.changes)] == [
        ("candidate/a", 0o111, b"2"),
        ("candidate/new", 0o111, b"a"),
    ]


def test_files_that_are_an_archive_already_are_sent_as_those_of_a_checkout(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", ("x/1.txt", "2.txt"))
    (folder / "big").write_bytes(bytes(SMALL))
    shipping, archive = Shipping(), tmp_path / "archive"
    archive.write_bytes(pack(entries(checkout(folder))))
    from_archive = parcel(shipping, archive)
    (folder / "2.txt").write_text("other")
    from_folder = parcel(shipping, folder)
    assert from_folder.base_sha == from_archive.base_sha
    assert [entry.name for entry in entries(from_folder.changes)] == ["candidate/2.txt"]


def test_what_differs_too_much_becomes_a_base_itself_instead_of_the_one_longest_unused(tmp_path: Path) -> None:
    shipping = Shipping()
    kinds = [bytes([kind]) * 2 * SMALL for kind in range(MOST_BASES + 1)]
    made = [parcel(shipping, tmp_path, big=kind) for kind in kinds[:MOST_BASES]]
    assert len({one.base_sha for one in made}) == MOST_BASES
    assert parcel(shipping, tmp_path, big=kinds[0], small=b"1").base_sha == made[0].base_sha
    last = parcel(shipping, tmp_path, big=kinds[-1])
    assert [one.outdated for one in (*made, last)] == [""] * MOST_BASES + [made[1].base_sha]
    assert parcel(shipping, tmp_path, big=kinds[1]).outdated == made[2].base_sha


def test_what_a_base_has_too_much_counts_as_well(tmp_path: Path) -> None:
    shipping = Shipping()
    large = parcel(shipping, tmp_path, huge=bytes(8 * SMALL), big=bytes(4 * SMALL), little=bytes(SMALL))
    (tmp_path / "little").unlink()
    assert parcel(shipping, tmp_path).base_sha == large.base_sha
    (tmp_path / "huge").unlink()
    without = parcel(shipping, tmp_path, a=b"1")
    assert without.base == checkout(tmp_path)
    assert parcel(shipping, tmp_path, a=b"2").base_sha == without.base_sha
    assert parcel(shipping, tmp_path, huge=bytes(8 * SMALL)).base_sha == large.base_sha
