"""Tags every process of a launch by a resource limit, which the kernel hands on through every fork and exec: neither a
session of its own, nor an ended parent, nor an emptied environment removes it.

It is the soft limit of file locks, which Linux keeps for every process and has ignored since 2.4.25. Other systems have
no such tag.
"""

import contextlib
import hashlib
import os
import resource

from workspace.plain_file import OWN_USERS

_LOCKS = 10  # RLIMIT_LOCKS, which `resource` does not name
_LINE = b"Max file locks"
_KIND = 1 << 61  # the highest bit of a tag's value; the lower 60 bits are a hash of the launch's tag


def value_of(tag: str) -> int:
    """Return the value of the limit that stands for a launch's tag."""
    return _KIND | int.from_bytes(hashlib.sha256(tag.encode()).digest()[:8]) >> 4


def put(pid: int, tag: str) -> bool:
    """Tag a process and whatever it will start. Returns whether that is possible here."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        _, most = resource.prlimit(pid, _LOCKS)
        resource.prlimit(pid, _LOCKS, (value_of(tag), most))
        return True
    return False


def is_ours(user: int) -> bool:
    """Return whether this is our own user, or one that Coral gives to agents and grades."""
    return user == os.geteuid() or user in OWN_USERS


def user_of(pid: int) -> int:
    """Return the number of the user as whom a process runs; 0 if it has ended. Its files in /proc may be root's."""
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
            _, _, rest = file.readall().partition(b"\nUid:")
    except OSError:
        return 0
    return int(rest.split(None, 1)[0]) if rest else 0


def read(pid: int) -> int:
    """Return the value in the tag of a process of ours; 0 if it has no tag, or belongs to another user."""
    try:
        with open(f"/proc/{pid}/limits", "rb", buffering=0) as file:
            owner = os.fstat(file.fileno()).st_uid
            # The files of a process that nobody may look into are root's: it can ask for that itself.
            if not is_ours(owner) and (owner != 0 or not is_ours(user_of(pid))):
                return 0
            text = file.readall()
    except OSError:
        return 0
    at = text.find(_LINE)
    soft = text[at + len(_LINE) :].split(None, 1)[0] if at >= 0 else b""
    return int(soft) if soft.isdigit() and int(soft) >> 60 == _KIND >> 60 else 0
