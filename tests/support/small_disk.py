"""A small disk of one test's own: mounted in a namespace of its own, so that no mount is left, however the test ends.

A test that is marked `small_disk` is run by a pytest of its own in there. Where no namespace can be had, it is skipped.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pytest

INSIDE = "CORAL_TEST_SMALL_DISK"
BLOCK = 1 << 16
DISK_OF_QUOTA = 512 << 20  # bytes
SECONDS = 300.0  # less than the test itself may take, so that the end of it is ours to see to


@cache
def why_not() -> str:
    """Return why no disk can be mounted here; empty where it can."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        return "there is no unshare or mount"
    tried = subprocess.run([*_unshare(), "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False)
    return f"no disk can be mounted here: {tried.stderr.decode(errors='replace').strip()}" if tried.returncode else ""


def run_inside(item: pytest.Function) -> None:
    """Run the test in a pytest that may mount."""
    if reason := why_not():
        pytest.skip(reason)
    base = item.config._tmp_path_factory.mktemp("inside")  # type: ignore[attr-defined]
    plain = ["-q", "-p", "pytest_timeout", "-p", "no:cacheprovider", "--basetemp", str(base / "pytest")]
    command = [*_unshare(), sys.executable, "-m", "pytest", *plain, item.nodeid]
    alone = {INSIDE: "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # all the others take half of the time to begin
    code, said = run_bounded(command, SECONDS, cwd=item.config.rootpath, env={**os.environ, **alone})
    assert code == 0, said[-20_000:]


def run_bounded(command: list[str], seconds: float, **more: Any) -> tuple[int | None, str]:
    """How it ended and what it said; None where it did not in time. Then nothing that it started is left, nor when we
    are called off: what has a group of its own, as a supervisor has, still has its parent, or a place in the tree."""
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True, **more) as inside:
            code = None
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    code = inside.wait(seconds)
            finally:
                if code is None:
                    _end(inside.pid)
        output.seek(0)
        return code, output.read().decode(errors="replace")


def _end(pid: int) -> None:
    """End a process and all below it. Each is halted before its children are looked for: it makes no more of them."""
    found = [psutil.Process(pid)]
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.suspend()
            found += process.children()
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


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

    @property
    def is_readonly(self) -> bool:
        return bool(os.statvfs(self.root).f_flag & os.ST_RDONLY)

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

    def turn_readonly(self) -> None:
        """Under whoever works on it, who would hold up a remount. The same disk, to be read alone, lies above it: from
        now on what is opened to be written is refused. On what is open already only a full disk is written no more.

        It is made beside the disk, where nobody works: a single file opened through it to be written would keep it
        from being made readonly."""
        beside = self.root.with_name(f"{self.root.name}-readonly")
        beside.mkdir(exist_ok=True)
        for how in (("--bind", self.root), ("-o", "remount,bind,ro")):
            subprocess.run(["mount", *map(str, how), str(beside)], check=True)
        self._mount("--move", str(beside))

    def turn_back(self) -> None:
        self._mount("-o", "remount,bind,rw")

    def unmount(self) -> None:
        subprocess.run(["umount", "-l", str(self.root)], check=True)

    def _mount(self, *how: str) -> None:
        subprocess.run(["mount", *how, str(self.root)], check=True)


class QuotaDisk(Disk):
    """A disk with a quota of `megabytes`. What it says to be free is more."""

    def __init__(self, root: Path, megabytes: int) -> None:
        self._top = root.with_name(f"{root.name}-top")
        image = root.with_name(f"{root.name}.img")
        with image.open("wb") as file:
            file.truncate(DISK_OF_QUOTA)
        self._top.mkdir()
        _run("mkfs.btrfs", "-q", image)
        # What is deleted counts until it is written down: a second later, not half a minute.
        _run("mount", "-o", "loop,commit=1", image, self._top)
        self.root = self._top / root.name
        _run("btrfs", "subvolume", "create", self.root)
        _run("btrfs", "quota", "enable", self._top)
        _run("btrfs", "qgroup", "limit", f"{megabytes}M", self.root)

    @staticmethod
    @cache
    def why_not() -> str:
        """Return why there can be no quota here; empty where there can."""
        if shutil.which("mkfs.btrfs") is None or os.geteuid() != 0:
            return "a quota needs root, and mkfs.btrfs (apt-get install btrfs-progs)"
        if "btrfs" not in Path("/proc/filesystems").read_text().split():
            return "the kernel has no btrfs"
        return "" if Path("/dev/loop-control").exists() else "there are no loop devices"

    def fill(self, left: int = 0) -> None:
        """Use all of the quota, but for so many bytes."""
        spare = self.root / "spare"
        if left:
            self._write(spare, left)
        self._write(self.root / "ballast", DISK_OF_QUOTA)
        spare.unlink(missing_ok=True)  # a file cannot be cut where the quota is used up

    def _write(self, path: Path, size: int) -> None:
        """Append so many bytes, or as many as there is room for."""
        with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            for _ in range(0, size, BLOCK):
                file.write(bytes(BLOCK))
                os.fsync(file.fileno())

    def unmount(self) -> None:
        _run("umount", "-l", self._top)


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[0]}: {done.stderr}"


def _unshare() -> list[str]:
    return ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
