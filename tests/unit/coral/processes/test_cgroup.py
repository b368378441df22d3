"""Our own control group, found in the two files of /proc that describe it."""

from pathlib import Path

import pytest

from coral.processes import cgroup

HYBRID = (
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu\n"
    "41 31 0:31 / /sys/fs/cgroup/unified rw,relatime shared:9 master:1 - cgroup2 cgroup2 rw\n"
)
PLAIN = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
PART = "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw\n"


@pytest.mark.parametrize(
    ("own", "mounts", "expected"),
    [
        ("4:memory:/some/where\n0::/\n", HYBRID, "/sys/fs/cgroup/unified"),
        (
            "0::/user.slice/user-1000.slice/app.slice/x.scope\n",
            PLAIN,
            "/sys/fs/cgroup/user.slice/user-1000.slice/app.slice/x.scope",
        ),
        ("0::/docker/abc/inner\n", PART, "/sys/fs/cgroup/inner"),
        ("0::/docker/abcdef\n", PART, None),
        ("0::/../outside\n", PLAIN, None),
        ("4:memory:/some/where\n", HYBRID, None),
        ("0::/\n", HYBRID.rpartition("41")[0], None),
    ],
)
def test_our_own_group_is_found(tmp_path: Path, own: str, mounts: str, expected: str | None) -> None:
    (tmp_path / "own").write_text(own)
    (tmp_path / "mounts").write_text(mounts)
    found = cgroup.own_group(tmp_path / "own", tmp_path / "mounts")
    assert found == (None if expected is None else Path(expected))
    assert cgroup.own_group(tmp_path / "absent", tmp_path / "mounts") is None
