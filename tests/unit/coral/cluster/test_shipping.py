"""The same files give the same bytes, and what is in them comes out as it was."""

import io
import os
import tarfile
from pathlib import Path

from coral.cluster.shipping import MOST_BASES, SMALL, Parcel, Shipping, digest, pack


def write(folder: Path, order: tuple[str, ...]) -> Path:
    for name in order:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def test_neither_the_order_nor_the_time_in_which_files_are_made_matters(tmp_path: Path) -> None:
    first = write(tmp_path / "a", ("x/1.txt", "2.txt"))
    second = write(tmp_path / "b", ("2.txt", "x/1.txt"))
    os.utime(second / "2.txt", (1, 1))
    assert pack({"private": first}) == pack({"private": second})
    (second / "2.txt").write_text("other")
    assert digest(pack({"private": first})) != digest(pack({"private": second}))


def test_modes_and_links_are_kept_and_what_python_compiled_is_not(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", ("run.sh", "__pycache__/x.pyc"))
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("run.sh")
    os.link(folder / "run.sh", folder / "twice")
    os.mkfifo(folder / "pipe")
    with tarfile.open(fileobj=io.BytesIO(pack({"p": folder}))) as archive:
        archive.extractall(tmp_path / "out", filter="fully_trusted")
    out = tmp_path / "out" / "p"
    assert sorted(path.name for path in out.iterdir()) == ["link", "run.sh", "twice"]
    assert (out / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (out / "link").readlink() == Path("run.sh")
    assert (out / "twice").read_text() == "run.sh"


def parcel(shipping: Shipping, folder: Path, **files: bytes) -> Parcel:
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return shipping.parcel({"places": {"candidate": str(folder)}})


def test_a_small_checkout_is_sent_whole(tmp_path: Path) -> None:
    sent = parcel(Shipping(), tmp_path, a=b"1")
    assert sent == Parcel(changes=pack({"candidate": tmp_path}))


def test_of_a_checkout_what_differs_from_its_base_is_sent(tmp_path: Path) -> None:
    shipping, big = Shipping(), bytes(SMALL)
    first = parcel(shipping, tmp_path, a=b"1", big=big, gone=b"")
    assert (first.base, first.removed) == (pack({"candidate": tmp_path}), ())
    assert first.base_sha == digest(first.base)
    (tmp_path / "gone").unlink()
    second = parcel(shipping, tmp_path, a=b"2", new=b"3")
    assert (second.base_sha, second.base, second.removed) == (first.base_sha, first.base, ("candidate/gone",))
    with tarfile.open(fileobj=io.BytesIO(second.changes)) as archive:
        assert archive.getnames() == ["candidate/a", "candidate/new"]
    (tmp_path / "a").chmod(0o755)
    (tmp_path / "new").unlink()
    (tmp_path / "new").symlink_to("a")
    with tarfile.open(fileobj=io.BytesIO(parcel(shipping, tmp_path).changes)) as archive:
        assert [(one.name, one.mode & 0o111, one.linkname) for one in archive] == [
            ("candidate/a", 0o111, ""),
            ("candidate/new", 0o111, "a"),
        ]


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
    assert without.base == pack({"candidate": tmp_path})
    assert parcel(shipping, tmp_path, a=b"2").base_sha == without.base_sha
    assert parcel(shipping, tmp_path, huge=bytes(8 * SMALL)).base_sha == large.base_sha
