"""How a child hands over its result: in memory that has no name, which nobody can change once the child has sealed it.
A pipe beside it takes notices, which nobody can take back.

Another process of the same user can reach both through /proc while the child runs; a process that the child leaves
behind cannot change what was handed over.
"""

import contextlib
import fcntl
import os

_SEALED = getattr(fcntl, "F_SEAL_WRITE", 0)
NOTICES = 4096  # bytes of notices that are read


class ResultChannel:
    """Both ends of the channel. `given`: the descriptors for the child, which closes them for the programs that it
    starts."""

    def __init__(self) -> None:
        self._notices, writing = os.pipe()
        try:
            self._memory = _memory()
        except OSError:
            os.close(self._notices)
            os.close(writing)
            raise
        os.set_blocking(self._notices, False)
        self.given = (self._memory, writing)

    def close_given(self) -> None:
        """Close our copy of the pipe's writing end, once the child has its own."""
        os.close(self.given[1])

    def result(self, most: int) -> bytes | None:
        """Return the first `most` + 1 bytes of what was handed over, so that a longer result can be told; None if
        nothing was."""
        with contextlib.suppress(OSError):
            if _SEALED and not fcntl.fcntl(self._memory, fcntl.F_GET_SEALS) & _SEALED:
                return None
        return os.pread(self._memory, most + 1, 0) or None

    def notices(self) -> str:
        """Return the lines that the child has written to the pipe, at most NOTICES bytes."""
        with contextlib.suppress(BlockingIOError):
            return os.read(self._notices, NOTICES).decode("utf-8", "replace")
        return ""

    def close(self) -> None:
        os.close(self._memory)
        os.close(self._notices)


def _memory() -> int:
    try:
        return os.memfd_create("result", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    except (AttributeError, OSError):  # on systems other than Linux: a file without a name, and no seal
        import tempfile

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())
