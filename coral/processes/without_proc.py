"""What is asked of processes where there is no /proc. It takes 9 ms to import psutil: who has /proc does without.

A start time is in hundredths of a second.
"""

from collections.abc import Iterator

import psutil


def started(pid: int) -> int | None:
    """When the process with this pid began; None if nobody has it, or only a zombie."""
    try:
        process = psutil.Process(pid)
        return int(process.create_time() * 100) if process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def processes() -> Iterator[tuple[int, int, int]]:
    """Of each that is no zombie: its pid, its parent's, and when it began."""
    for process in psutil.process_iter(["ppid", "create_time", "status"]):
        if process.info["status"] != psutil.STATUS_ZOMBIE:
            yield process.pid, process.info["ppid"] or 0, int((process.info["create_time"] or 0) * 100)


def environment(pid: int) -> bytes:
    """What a process was started with, as the kernel of Linux would give it; empty where that is not for us to see."""
    try:
        held = psutil.Process(pid).environ()
        return b"\0".join(f"{name}={value}".encode() for name, value in held.items())
    except (psutil.Error, OSError):
        return b""


def boot() -> str:
    """Which boot of the machine this is."""
    return str(int(psutil.boot_time()))
