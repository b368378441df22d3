"""What a job of Slurm does: runs one grade, and writes its events to a file in a folder that the bridge reads.

The folder lies on the file system that the nodes share. So does the Python environment, with Coral in it.
"""

import errno
import json
import os
import socket
import threading
import time
from pathlib import Path
from typing import Any

from coral.cluster import node, wire

ORDER, CHECKOUT, EVENTS, CLAIM, ALIVE, ARCHIVES, LEASE = (
    "order.json",
    "checkout",
    "events.jsonl",
    "claimed",
    "alive",
    "archives",
    "lease",
)
LOOK_SECONDS = 2.0
GONE = -1
LONG_SECONDS = 10.0  # a look that takes longer shows that the shared disk stands still, or that this machine does
_UNKNOWN = (errno.ESTALE, errno.EIO)  # errors of a look at a shared disk that tell nothing of what is there


def is_unknown(error: OSError) -> bool:
    """Return whether a look at the shared disk has failed in a way that tells nothing of what is there."""
    return error.errno in _UNKNOWN


def run(folder: str, lease_seconds: float) -> None:
    """Run the grade of a try. `folder`: that of the try. The job ends when the folder is removed, or when the bridge
    has not renewed its lease for `lease_seconds`."""
    place = Path(folder)
    try:
        os.close(os.open(place / CLAIM, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:  # the try is over, or was submitted twice and another job has it
        return
    threading.Thread(target=_watch, args=(place, lease_seconds), daemon=True).start()
    order = json.loads((place / ORDER).read_text("utf-8"))
    spot = {"node": socket.gethostname(), "started": f"{socket.gethostname()} as job {_job()}"}
    with (place / EVENTS).open("ab") as events:

        def tell(event: dict[str, Any]) -> None:
            events.write(wire.encoded({**event, **spot} if "started" in event else event))
            events.flush()
            os.fsync(events.fileno())

        archives = place.parent.parent / ARCHIVES
        node.grade(order, (place / CHECKOUT).read_bytes(), lambda sha: (archives / sha).read_bytes(), tell)


def _job() -> str:
    return os.environ.get("SLURM_JOB_ID") or os.environ.get("SUBMITIT_LOCAL_JOB_ID", "?")


def _watch(place: Path, lease_seconds: float) -> None:
    """Give signs of life, and end the job when its folder is gone or the lease has run out: a guard then ends the
    grader. Times of two machines are never compared: a file's time only tells that it was touched again. The time of
    the lease begins anew after a look that took long, or that told nothing: the bridge could not renew it either."""
    lease, seen, at = place.parent.parent / LEASE, 0, time.monotonic()
    while True:
        began = time.monotonic()
        found: int | None
        try:
            found = _looked(place, lease)
        except OSError as error:
            found = None if is_unknown(error) else seen
        now = time.monotonic()
        if found == GONE:
            break
        if found is None or now > began + LONG_SECONDS:
            at = now
        elif found != seen:
            seen, at = found, now
        if now > at + lease_seconds:
            break
        time.sleep(LOOK_SECONDS)
    os._exit(1)


def _looked(place: Path, lease: Path) -> int:
    """Give a sign of life. Return when the lease was renewed, as its file tells, or GONE if the folder of the try is
    gone. Raises OSError."""
    try:
        place.stat()
    except FileNotFoundError:
        return GONE
    (place / ALIVE).touch()
    return lease.stat().st_mtime_ns
