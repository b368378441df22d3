"""Has ext4 place each new folder of a folder in a part of the disk of its own. Standard library only: Ray sends this
module to the nodes by value."""

import contextlib
import fcntl
import os
import struct
import sys
from pathlib import Path

GET, SET = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
TOP = 0x00020000  # FS_TOPDIR_FL, as `chattr +T` sets it


def spread_folders(folder: Path) -> None:
    """Have ext4 treat a folder as the top of a disk: those in it are spread over the disk. Changes nothing elsewhere.

    Without a journal, ext4 does not use the number of a file again for minutes after that was removed, and looks at
    each of these numbers whenever a file is made near by. Where grades make and remove their files in one part of the
    disk, that soon takes half a millisecond for each new file.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError):  # another file system, or not ours
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            (flags,) = struct.unpack("i4x", fcntl.ioctl(handle, GET, bytes(8)))
            if not flags & TOP:
                fcntl.ioctl(handle, SET, struct.pack("i4x", flags | TOP))
        finally:
            os.close(handle)
