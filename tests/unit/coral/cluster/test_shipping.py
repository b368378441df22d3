"""The same files give the same bytes, and what is in them comes out as it was."""

import io
import os
import tarfile
from pathlib import Path

from coral.cluster.shipping import digest, pack


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
