"""Names the launches of a run so that no agent can name another's.

Everything else in a tag is public, and a process chooses the tag that it has. So each tag holds a digest of the launch
under a secret of the run, which lies where sealed agents cannot read: what an agent knows of its own tags is no help to
find those of others. The secret is stored, because a later supervisor must find the same processes.
"""

import contextlib
import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from workspace.layout import Layout
from workspace.plain_file import read_plain

_BYTES = 32  # of the secret
_DIGEST = 16  # bytes


@dataclass(frozen=True, slots=True)
class LaunchTags:
    """The tags of a run's launches. `run`: what tells this run from all others, copies of its folder included."""

    run: str
    secret: bytes

    def of(self, who: str, number: int) -> str:
        """Return the tag of a launch."""
        digest = hashlib.blake2b(f"{self.run}/{who}/{number}".encode(), key=self.secret, digest_size=_DIGEST)
        return f"{self.run}.{digest.hexdigest()}/{who}/{number}"


def tags_of(layout: Layout) -> LaunchTags:
    """Return the tags of a run, and make its secret if it has none yet. For the holder of the run's lock."""
    secret = read_plain(layout.launch_secret, _BYTES) or b""
    if len(secret) < _BYTES:
        secret = secrets.token_bytes(_BYTES)
        with contextlib.suppress(OSError):  # on a full disk: only a later supervisor would need it
            _store(layout.launch_secret, secret)
    return LaunchTags(name_of_run(layout), secret)


def name_of_run(layout: Layout) -> str:
    """Return the name of a run on this machine: with the inode, so that a copy never meets the original's processes."""
    return f"{layout.root.name}.{layout.root.stat().st_ino}"


def tag_of_one(name: str) -> str:
    """Return a tag for a launch that belongs to no run, and that no later process looks for."""
    return f"{name}.{secrets.token_hex(_DIGEST)}"


def _store(path: Path, secret: bytes) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
