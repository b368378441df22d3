"""Where the file system is ext4, the folders of grades are spread over the disk; elsewhere nothing changes."""

import fcntl
import os
import struct
import subprocess
from pathlib import Path

import pytest

from coral.cluster.spread_folders import GET, TOP, spread_folders


def is_top(folder: Path) -> bool:
    handle = os.open(folder, os.O_RDONLY)
    try:
        return bool(struct.unpack("i4x", fcntl.ioctl(handle, GET, bytes(8)))[0] & TOP)
    finally:
        os.close(handle)


def test_the_folders_in_a_folder_are_spread(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    kind = subprocess.run(["stat", "-f", "-c", "%T", tmp_path], capture_output=True, text=True, check=True).stdout
    if "ext" not in kind:
        pytest.skip(f"the file system is {kind.strip()}")
    for _ in range(2):
        spread_folders(tmp_path)
        assert (is_top(tmp_path), is_top(tmp_path / "in")) == (True, False)


def test_where_that_is_not_possible_nothing_happens(tmp_path: Path) -> None:
    spread_folders(tmp_path / "absent")
    spread_folders(Path("/proc/self"))
