"""A small disk of one test's own: mounted in a namespace of its own, so that no mount is left, however the test ends.

A test that is marked `small_disk` is run by a pytest of its own in there. Where no namespace can be had, it is skipped.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

INSIDE = "CORAL_TEST_SMALL_DISK"
BLOCK = 1 << 16


@cache
def why_not() -> str:
    """Why no disk can be mounted here; empty where it can."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return "there is no unshare or mount"
    tried = subprocess.run([*_unshare(), "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return f"no disk can be mounted here: {tried.stderr.decode(errors='replace').strip()}" if tried.returncode else ""


def run_inside(item: pytest.Function) -> None:
    """Run the test in a pytest that may mount."""
    if reason := why_not():
        pytest.skip(reason)
    base = item.config._tmp_path_factory.mktemp("inside")  # type: ignore[attr-defined]
    plain = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", str(base / "pytest")]
    command = [*_unshare(), sys.executable, "-m", "pytest", *plain, item.nodeid]
    done = subprocess.run(
        command, cwd=item.config.rootpath, env={**os.environ, INSIDE: "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2000:]


def is_inside() -> bool:
    return INSIDE in os.environ


class Disk:
    """A mounted disk. `root` is where."""

    def __init__(self, root: Path, megabytes: int) -> None:
        self.root = root
        root.mkdir()
        self._mount("-t", "tmpfs", "-o", f"size={megabytes}m,nr_inodes=20000", "tmpfs")

    @property
    def left(self) -> int:
        found = os.statvfs(self.root)
        return found.f_bfree * found.f_frsize

    def fill(self, left: int = 0) -> None:
        """Leave so many bytes free; none at all by default."""
        with (self.root / "ballast").open("ab", buffering=0) as file:
            try:
                while self.left > left:
                    file.write(bytes(min(BLOCK, max(self.left - left, 4096))))
            except OSError:
                pass

    def ease(self) -> None:
        (self.root / "ballast").unlink()

    def make_readonly(self, readonly: bool = True) -> None:
        self._mount("-o", f"remount,{'ro' if readonly else 'rw'}")

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.root)], check=True)

    def _mount(self, *how: str) -> None:
        subprocess.run(["mount", *how, str(self.root)], check=True)


def _unshare() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
