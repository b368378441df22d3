"""The bridge to Slurm: submits each try of a grade as a job (`coral.cluster.slurm_job`) through submitit, and reads
the events that the job writes.

Everything about a try lies in a folder of its own below that of the bridge, so that the next bridge can take the job
over.
"""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from attempts.files import write_bytes
from coral.cluster import slurm_job, wire
from coral.cluster.bridge import LEASE_EVERY, LEASE_SECONDS, Bridge, RefusedError, fail, report_trouble, wait_for_lock
from coral.cluster.node import started_at
from coral.cluster.shipping import Shipping

TRIES, JOB, KEY = "tries", "job", "key"
READ_SECONDS = 0.2  # between two reads of the events of all jobs
STATE_SECONDS = {"slurm": 10.0, "local": 1.0}  # between two questions which jobs wait or run: one for all jobs
SILENT_SECONDS = 120.0  # after the last sign of life of a job that has begun, until it counts as lost
LATE_SECONDS = 5.0  # for which a job that has ended may still have events on their way through the file system
ALIVE_SECONDS = 10.0  # after a sign of life: for so long a job runs, even if the queue does not list it
RETRY_SECONDS = 10.0  # until a job that Slurm did not take is submitted again
SIGNAL_SECONDS = 10  # before its time limit at which Slurm signals a job; submitit's default is 90
# Words of the errors by which sbatch refuses a job for good: its exit code is always 1. Any other error, such as a
# controller that does not answer, may pass.
_NEVER = ("invalid", "not available", "not permitted", "not allowed", "more processors", "unrecognized option")
# Of errors with such words, those that pass: maintenance, and the service that signs requests.
_PASSING = ("partition not available", "node not available", "invalid authentication credential")
_MARGIN = 120.0  # seconds by which the time limit of a job is longer than that of its grade, which the job enforces
_QUEUE = ("squeue", "--me", "--noheader", "--format=%A|%T|%r")
_ASK_SECONDS = 60.0
UNANSWERED_SECONDS = 30.0  # for which squeue may fail before no grade begins any more


def main(folder: str, cluster: str) -> None:
    """`cluster`: "slurm", or "local" for jobs on this machine without Slurm."""
    if wait_for_lock(Path(folder)):
        SlurmBridge(Path(folder), cluster).serve()


@dataclass
class _Job:
    """A try that was submitted. `handle`: submitit's job. `offset`: the bytes of its events that were read."""

    folder: Path
    handle: Any
    events: list[Any] = field(default_factory=list)
    offset: int = 0
    alive: int = 0  # the time of its last sign of life in nanoseconds, by the clock of its node
    alive_at: float = 0.0  # when this bridge saw that sign, on its own clock
    done_at: float | None = None  # since when the queue lists the job no more
    is_unread: bool = False  # whether the last look at its events told nothing

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
        self._silent_since: float | None = None
        self._asking = 0.0  # seconds for which the present pass has waited for Slurm's answer
        self._is_doubted = bool(wire.trouble(folder))  # whether Slurm must be asked whether it answers at all

    def serve(self) -> None:
        for work in (self._watch, self._renew):
            threading.Thread(target=work, daemon=True).start()
        super().serve()

    def submit(self, key: str, order: dict[str, Any], resources: dict[str, Any]) -> None:
        if key in self._jobs:
            return
        if self.has_sent_events(key):
            tried = self._tries[key]
            tried.tell(tried.seen, [{"lost": "its job is not known any more"}])
            return
        sha, archive = self._shipping.archive(Path(order["places"]["private"]))
        # The name is new: a job that a killed bridge submitted may still use the folder of the same try.
        kept, place = self._folder / slurm_job.ARCHIVES / sha, self._folder / TRIES / secrets.token_hex(16)
        if not kept.exists():
            write_bytes(kept, archive, durable=False)
        place.mkdir(mode=0o700)
        try:
            (place / KEY).write_text(key, "utf-8")
            data = json.dumps({**order, "archive": sha, "base": ""}).encode()
            write_bytes(place / slurm_job.ORDER, data, durable=False)
            write_bytes(place / slurm_job.CHECKOUT, self._shipping.candidate(order), durable=False)
            (place / slurm_job.EVENTS).touch()  # a client of NFS that finds no file may believe so for a minute
            while isinstance(handle := self._submitted(place, order, resources), str):
                if not self.is_waited_for(key, handle, RETRY_SECONDS):
                    shutil.rmtree(place, ignore_errors=True)
                    return
            write_bytes(place / JOB, str(handle.job_id).encode(), durable=False)
        except OSError:  # it is submitted again, in another folder; a job ends whose folder is gone
            shutil.rmtree(place, ignore_errors=True)
            raise
        with self._changed:
            self._jobs[key] = _Job(place, handle)

    def _submitted(self, place: Path, order: dict[str, Any], resources: dict[str, Any]) -> Any:
        """Submit a job and return its handle. Return a text that says why if Slurm does not take it now. Raise
        RefusedError if Slurm will never take it."""
        try:
            return self._executor(place, order, resources).submit(slurm_job.run, str(place), LEASE_SECONDS)
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # of submitit; RuntimeError: of sbatch, too
            text = " ".join(str(error).split())[-300:]
            of_slurm = isinstance(error, OSError | self._submitit.core.utils.FailedJobError)
            low = text.lower()
            if not of_slurm or (_has(low, _NEVER) and not _has(low, _PASSING)):
                shutil.rmtree(place, ignore_errors=True)
                raise RefusedError(text) from error
        self._is_doubted = True
        return f"Slurm does not take its job: {text}"

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
            # There is no scancel any more, or it does not answer, or there is no such process.
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                self._end(job)
        # A job whose folder is gone ends by itself.
        shutil.rmtree(job.folder, ignore_errors=True)

    def _end(self, job: _Job) -> None:
        if self._cluster == "local":
            job.handle.cancel(check=False)
        else:  # submitit would wait for it without end
            subprocess.run(("scancel", job.id), timeout=_ASK_SECONDS, check=False)

    def keys(self) -> list[str]:
        with self._changed:
            return list(self._jobs)

    def _take_over(self, place: Path) -> None:
        """Take over a try of the bridge before. One whose job is not known is removed: then its job ends by itself."""
        try:
            key, id = (place / KEY).read_text("utf-8"), (place / JOB).read_text("utf-8")
        except OSError as error:
            if slurm_job.is_unknown(error):  # the next bridge looks again
                fail(self._folder, f"the disk that is shared with Slurm's nodes cannot be read: {error}")
            shutil.rmtree(place, ignore_errors=True)
            return
        kind = self._submitit.SlurmJob if self._cluster == "slurm" else self._submitit.LocalJob
        self._jobs[key] = _Job(place, kind(folder=place / "submitit", job_id=id))

    def _renew(self) -> None:
        """Renew the lease, without which jobs end. `_watch` may wait for Slurm, or for a client that takes nothing."""
        while True:
            with contextlib.suppress(OSError):  # the shared disk fails: it is tried again
                self._lease.touch()
            time.sleep(LEASE_EVERY)

    def _watch(self) -> None:
        looked, before = float("-inf"), time.monotonic()
        while True:
            now = time.monotonic()
            if now - before - self._asking > slurm_job.LONG_SECONDS:
                self._begin_anew(now)
            before, self._asking = now, 0.0
            present = [(tried, job) for tried in self.present() if (job := self._jobs.get(tried.key)) is not None]
            for _, job in present:
                if not job.is_over:  # what a lost job writes later does not count
                    read_events(job)
            if now >= looked + STATE_SECONDS[self._cluster]:
                looked = now
                self._find_lost([job for _, job in present if not job.is_over], now)
            for tried, job in present:
                tried.tell(0, job.events)
            self.cancel_unclaimed()
            time.sleep(READ_SECONDS)

    def _begin_anew(self, now: float) -> None:
        """Begin all times of silence anew, after a pass that took long: the shared disk stood still, so that no job
        could give a sign of life, or this machine did. A slow answer of Slurm is neither."""
        with self._changed:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.alive_at, job.done_at = now, None

    def _find_lost(self, jobs: list[_Job], now: float) -> None:
        if not jobs and not self._is_doubted:
            return
        began = time.monotonic()
        running = self._running(jobs)
        self._asking = time.monotonic() - began
        for job in jobs:
            if job.is_unread or not _find_life(job, now):  # what the job has written may be there
                job.alive_at, job.done_at = now, None
            elif job.alive and now > job.alive_at + SILENT_SECONDS:
                job.events.append({"lost": f"its job {job.id} gave no sign of life for {SILENT_SECONDS:g} s"})
            elif running is None or job.id in running or (job.alive and now < job.alive_at + ALIVE_SECONDS):
                job.done_at = None
            elif job.done_at is None:
                job.done_at = now
            elif now > job.done_at + LATE_SECONDS:
                job.events.append({"lost": f"its job {job.id} has ended without a result{_error(job)}"})

    def look(self, found: dict[str, Any], *, by_nodes: bool) -> dict[str, str]:  # noqa: ARG002 - nodes are Slurm's
        with self._changed:
            jobs = dict(self._jobs)
        queue = self._running(list(jobs.values())) or {}
        return {key: f"job {job.id} is {queue[job.id]}" for key, job in jobs.items() if job.id in queue}

    def refusal(self, resources: dict[str, Any]) -> str:
        if self._cluster == "local":
            return ""
        options = [f"--{name}={value}" for name, value in _options(resources)]
        line = ["sbatch", "--test-only", *options, "--wrap=true"]
        try:
            asked = subprocess.run(line, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        lines = asked.stderr.strip().splitlines()
        return lines[-1].removeprefix("allocation failure: ") if asked.returncode and lines else ""

    def _running(self, jobs: list[_Job]) -> dict[str, str] | None:
        """Return by id the state of the jobs that wait or run; None if Slurm does not answer. `squeue` is asked, since
        `sacct`, which submitit uses, knows nothing on a cluster that keeps no accounts."""
        if self._cluster == "local":
            return {job.id: "running" for job in jobs if started_at(int(job.id))}
        try:
            asked = subprocess.run(_QUEUE, capture_output=True, text=True, timeout=_ASK_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            self._is_doubted, now = True, time.monotonic()
            self._silent_since = now if self._silent_since is None else self._silent_since
            if now >= self._silent_since + UNANSWERED_SECONDS:
                why = error.stderr if isinstance(error, subprocess.CalledProcessError) else ""
                report_trouble(self._folder, f"Slurm does not answer: {(why.strip() or str(error)).splitlines()[-1]}")
            return None
        self._is_doubted, self._silent_since = False, None
        report_trouble(self._folder, "")
        rows = [line.split("|") for line in asked.stdout.split("\n") if line.count("|") == 2]
        return {id: f"{state.lower()} ({reason})" for id, state, reason in rows}


def _options(resources: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options of sbatch for what a grade's job asks for by submitit's names."""
    for name, value in resources.items():
        if name == "slurm_additional_parameters":
            yield from ((own.replace("_", "-"), given) for own, given in value.items())
        elif name == "mem_gb":
            yield "mem", f"{value * 1024:.0f}M"
        else:
            yield name.removeprefix("slurm_").replace("_", "-"), value


def _find_life(job: _Job, now: float) -> bool:
    """Look for a new sign of life of a job. Return whether the look told anything."""
    try:
        alive = (job.folder / slurm_job.ALIVE).stat().st_mtime_ns
    except OSError as error:  # as before the first sign
        return not slurm_job.is_unknown(error)
    if alive != job.alive:
        job.alive, job.alive_at = alive, now
    return True


def _error(job: _Job) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines = (job.handle.stderr() or "").strip().splitlines()
        return f": {lines[-1]}" if lines else ""
    return ""


def read_events(job: _Job) -> None:
    """Read the events that a job has written since the last look."""
    job.is_unread = False
    try:
        with (job.folder / slurm_job.EVENTS).open("rb") as file:
            _read_from(file, job)
    except OSError as error:
        job.is_unread = slurm_job.is_unknown(error)


def _read_from(file: IO[bytes], job: _Job) -> None:
    file.seek(job.offset)
    for line in file:
        if not line.endswith(b"\n"):
            break
        job.offset += len(line)
        try:
            job.events.append(wire.decoded(line))
        except ValueError:  # code of a candidate in the job can write there, too
            job.events.append({"lost": f"its job {job.id} has an event that cannot be read"})


def _has(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)
