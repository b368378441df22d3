"""The bridge to Slurm: submits each try of a grade as a job (`coral.cluster.slurm_job`) through submitit, and reads
what the job writes.

A try has a folder in that of the bridge, which has everything about it: another bridge goes on from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import select
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from coral.cluster import slurm_job, wire
from coral.cluster.bridge import LEASE_SECONDS, Bridge, RefusedError, fail, wait_for_lock
from coral.cluster.shipping import Shipping

TRIES, JOB, KEY = "tries", "job", "key"
READ_SECONDS, LEASE_EVERY = 0.2, 10.0
STATE_SECONDS = {"slurm": 10.0, "local": 1.0}  # between two looks at what is queued; Slurm is asked once for all jobs
SILENT_SECONDS = 120.0  # without a sign of life from a job that has begun, until it is lost
LATE_SECONDS = 5.0  # that a file may take from a node to here
ALIVE_SECONDS = 10.0  # after a sign of life, in which a job is not over, whatever is queued
RETRY_SECONDS = 10.0  # until Slurm is asked again to take a job
SIGNAL_SECONDS = 10  # before its limit at which submitit signals a job; its own choice would be 90
# What sbatch says of what it never takes; anything else, such as a controller that does not answer, may pass.
_NEVER = ("invalid", "not available", "not permitted", "not allowed", "more processors", "unrecognized option")
_MARGIN = 120.0  # seconds of a job's limit beyond that of its grade, which the job keeps to itself
_QUEUE = ("squeue", "--me", "--noheader", "--format=%A")
_ASK_SECONDS = 60.0


def main(folder: str, cluster: str) -> None:
    """`cluster`: "slurm", or "local" for jobs on this machine without Slurm."""
    if wait_for_lock(Path(folder)):
        SlurmBridge(Path(folder), cluster).serve()


@dataclass
class _Job:
    """A try that was submitted. `offset`: how much of its events was read."""

    folder: Path
    handle: Any  # submitit's
    events: list[Any] = field(default_factory=list)
    offset: int = 0
    alive: int = 0  # the time of its last sign of life, by the clock of its node
    alive_at: float = 0.0  # when that was seen
    done_at: float | None = None  # when the job was found to be over

    @property
    def id(self) -> str:
        return str(self.handle.job_id)

    @property
    def has_result(self) -> bool:
        return any("ended" in event for event in self.events)

    @property
    def is_over(self) -> bool:
        return self.has_result or any("lost" in event for event in self.events)


class SlurmBridge(Bridge):
    def __init__(self, folder: Path, cluster: str) -> None:
        super().__init__(folder)
        self._cluster, self._submitit = cluster, import_module("submitit")
        if cluster == "slurm" and shutil.which("sbatch") is None:
            fail(folder, "there is no sbatch on this machine: is it one that may submit jobs to Slurm?")
        for name in (TRIES, slurm_job.ARCHIVES):
            (folder / name).mkdir(mode=0o700, exist_ok=True)
        self._shipping = Shipping()
        self._jobs: dict[str, _Job] = {}
        self._lease = folder / slurm_job.LEASE
        self._lease.touch()
        for place in sorted((folder / TRIES).iterdir()):
            self._take_over(place)
        (folder / wire.TROUBLE).unlink(missing_ok=True)

    def serve(self) -> None:
        threading.Thread(target=self._watch, daemon=True).start()
        super().serve()

    def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        if key in self._jobs:
            return
        sha, archive = self._shipping.archive(Path(order["places"]["private"]))
        kept, place = self._folder / slurm_job.ARCHIVES / sha, self._folder / TRIES / _name(key)
        if not kept.exists():
            _write(kept, archive)
        place.mkdir(mode=0o700, exist_ok=True)
        (place / KEY).write_text(key, "utf-8")
        _write(place / slurm_job.ORDER, json.dumps({**order, "archive": sha}).encode())
        _write(place / slurm_job.CHECKOUT, self._shipping.checkout(order))
        while (handle := self._submitted(key, place, order, resources)) is None:
            until = time.monotonic() + RETRY_SECONDS
            while time.monotonic() < until:
                if self._is_given_up(key):
                    shutil.rmtree(place, ignore_errors=True)
                    return
                time.sleep(READ_SECONDS)
        _write(place / JOB, str(handle.job_id).encode())
        with self._changed:
            self._jobs[key] = _Job(place, handle)

    def _submitted(self, key: str, place: Path, order: dict[str, Any], resources: dict[str, Any]) -> Any:
        """Return the handle of a new job; None where Slurm cannot take it now, which the client is told. RefusedError
        if it never will."""
        try:
            return self._executor(place, order, resources).submit(slurm_job.run, str(place), LEASE_SECONDS)
        except (self._submitit.core.utils.FailedJobError, OSError) as error:
            text = " ".join(str(error).split())[-300:]
            print(text, file=sys.stderr, flush=True)
            if not any(word in text.lower() for word in _NEVER):
                if (tried := self._tries.get(key)) is not None:
                    tried.client.send(trouble=f"Slurm does not take its job: {text}")
                return None
            shutil.rmtree(place, ignore_errors=True)
            raise RefusedError(text) from error
        except (ValueError, TypeError, RuntimeError) as error:  # of submitit, such as where there is no srun
            shutil.rmtree(place, ignore_errors=True)
            raise RefusedError(" ".join(str(error).split())[-300:]) from error

    def _is_given_up(self, key: str) -> bool:
        """Whether the client of a try that is not submitted yet has ended."""
        tried = self._tries.get(key)
        if tried is None:
            return True
        with contextlib.suppress(OSError):
            if not select.select([tried.client.connection], [], [], 0)[0]:
                return False
            return tried.client.connection.recv(1, socket.MSG_PEEK) == b""
        return True

    def _executor(self, place: Path, order: dict[str, Any], resources: dict[str, Any]) -> Any:
        executor = self._submitit.AutoExecutor(folder=place / "submitit", cluster=self._cluster)
        minutes = math.ceil((order["timeout"] + _MARGIN) / 60)
        own = {"timeout_min": minutes, "name": f"coral-{order['attempt']}", "slurm_signal_delay_s": SIGNAL_SECONDS}
        executor.update_parameters(**own, **resources)
        return executor

    def cancel(self, key: str) -> None:
        with self._changed:
            job = self._jobs.pop(key, None)
        if job is None:
            return
        if not job.has_result:
            with contextlib.suppress(OSError):  # it is over
                job.handle.cancel(check=False)
        # Without its folder it ends in any case.
        shutil.rmtree(job.folder, ignore_errors=True)

    def keys(self) -> list[str]:
        with self._changed:
            return list(self._jobs)

    def _take_over(self, place: Path) -> None:
        """Go on with a try of the bridge before, where it was submitted."""
        try:
            key, id = (place / KEY).read_text("utf-8"), (place / JOB).read_text("utf-8")
        except OSError:
            shutil.rmtree(place, ignore_errors=True)
            return
        kind = self._submitit.SlurmJob if self._cluster == "slurm" else self._submitit.LocalJob
        self._jobs[key] = _Job(place, kind(folder=place / "submitit", job_id=id))

    def _watch(self) -> None:
        renewed = looked = float("-inf")
        while True:
            now = time.monotonic()
            if now >= renewed + LEASE_EVERY:
                renewed = now
                self._lease.touch()
            present = [(tried, job) for tried in self.present() if (job := self._jobs.get(tried.key)) is not None]
            for _, job in present:
                if not job.is_over:  # what a lost job still writes counts no more
                    _read(job)
            if now >= looked + STATE_SECONDS[self._cluster]:
                looked = now
                self._find_lost([job for _, job in present if not job.is_over], now)
            for tried, job in present:
                tried.tell(0, job.events)
            self.cancel_unclaimed()
            time.sleep(READ_SECONDS)

    def _find_lost(self, jobs: list[_Job], now: float) -> None:
        running = self._running(jobs) if jobs else None
        for job in jobs:
            with contextlib.suppress(OSError):
                if (alive := (job.folder / slurm_job.ALIVE).stat().st_mtime_ns) != job.alive:
                    job.alive, job.alive_at = alive, now
            if job.alive and now > job.alive_at + SILENT_SECONDS:
                job.events.append({"lost": f"its job {job.id} gave no sign of life for {SILENT_SECONDS:g} s"})
            elif running is None or job.id in running or (job.alive and now < job.alive_at + ALIVE_SECONDS):
                job.done_at = None
            elif job.done_at is None:
                job.done_at = now
            elif now > job.done_at + LATE_SECONDS:
                job.events.append({"lost": f"its job {job.id} has ended without a result{_error(job)}"})

    def _running(self, jobs: list[_Job]) -> set[str] | None:
        """Return the ids of those jobs that wait or run; None if that is not known now. `squeue` knows it on every
        cluster; `sacct`, which submitit asks, only where there is an accounting."""
        if self._cluster == "local":
            return {job.id for job in jobs if is_running(int(job.id))}
        try:
            asked = subprocess.run(_QUEUE, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return set(asked.stdout.split())


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


def _error(job: _Job) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = (job.handle.stderr() or "").strip().splitlines()
        return f": {lines[-1]}" if lines else ""
    return ""


def _read(job: _Job) -> None:
    """Read the events that a job has written since the last look."""
    with contextlib.suppress(OSError), (job.folder / slurm_job.EVENTS).open("rb") as file:
        file.seek(job.offset)
        for line in file:
            if not line.endswith(b"\n"):
                break
            job.offset += len(line)
            job.events.append(wire.decoded(line))


def _name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    unfinished.write_bytes(data)
    unfinished.replace(path)
