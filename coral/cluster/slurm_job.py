"""What a job of Slurm does: runs one grade, and writes its events to a file in a folder that the bridge reads.

The folder lies on the file system that the nodes share. So does the Python environment, with Coral in it.
"""

import contextlib
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
    "checkout.tar",
    "events.jsonl",
    "claimed",
    "alive",
    "archives",
    "lease",
)
LOOK_SECONDS = 2.0


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
    grader. Times of two machines are never compared: a file's time only tells that it was touched again."""
    lease, seen, at = place.parent.parent / LEASE, 0, time.monotonic()
    while place.exists():
        with contextlib.suppress(OSError):
            (place / ALIVE).touch()
            if (found := lease.stat().st_mtime_ns) != seen:
                seen, at = found, time.monotonic()
        if time.monotonic() > at + lease_seconds:
            break
        time.sleep(LOOK_SECONDS)
    os._exit(1)
