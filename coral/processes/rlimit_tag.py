"""The mark of a launch, which every process that comes of it bears: neither a session of its own, nor a parent that is
gone, nor an emptied environment takes it away.

It is a resource limit, for the kernel hands those on through every fork and exec: the soft limit of file locks, which
Linux keeps for every process and has not heeded since 2.4.25. Other systems have no mark.
"""

import contextlib
import hashlib
import os
import resource

_LOCKS = 10  # RLIMIT_LOCKS, which `resource` does not name
_LINE = b"Max file locks"
_KIND = 1 << 61  # what a mark begins with; the other 60 bits say of which launch


def value_of(tag: str) -> int:
    """The mark that stands for a launch's tag."""
    return _KIND | int.from_bytes(hashlib.sha256(tag.encode()).digest()[:8]) >> 4


def put(pid: int, tag: str) -> bool:
    """Mark a process and whatever it will start; whether that is possible here."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        _, most = resource.prlimit(pid, _LOCKS)
        resource.prlimit(pid, _LOCKS, (value_of(tag), most))
        return True
    return False


def read(pid: int) -> int:
    """The mark of a process of this user's; 0 where it has none, or is somebody else's."""
    try:
        with open(f"/proc/{pid}/limits", "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_uid != os.geteuid():
                return 0
            text = file.readall()
    except OSError:
        return 0
    at = text.find(_LINE)
    soft = text[at + len(_LINE) :].split(None, 1)[0] if at >= 0 else b""
    return int(soft) if soft.isdigit() and int(soft) >> 60 == _KIND >> 60 else 0
