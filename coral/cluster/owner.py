"""The actor that owns a run's grades on the cluster. It outlives the bridge: a task that the actor has submitted goes
on when the bridge is killed, and its result waits here. Ray sends this module to its node by value.

A grade has a key. Submitting a key again changes nothing. Once a grade has ended or is lost, later events are dropped.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
from collections.abc import Collection, Mapping
from typing import Any

import ray

from coral.cluster import node
from coral.cluster.node_report import PORT_SECONDS, is_of_disk, report

CALLS = 16  # of its methods that may run at the same time
SILENT_SECONDS = 20.0  # without a word of a bridge, from which on the head is asked whether it is there
MOST_TEXT = 20_000  # characters that are kept of what Ray says


def run_grade(
    owner: Any, key: str, order: dict[str, Any], checkout: bytes, archives: dict[str, ray.ObjectRef[Any]]
) -> None:
    """Run a grade on the node of this task. `archives`: references by the hash, so that Ray fetches an archive only to
    a node that lacks it."""
    if not ray.get_runtime_context().get_accelerator_ids().get("GPU"):
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # Ray leaves that of the node, whose cards it would see
    spot = {"node": ray.get_runtime_context().get_node_id(), "started": ray.util.get_node_ip_address()}

    def tell(event: dict[str, Any]) -> None:
        _wait(owner.push.remote(key, {**event, **spot} if "started" in event else event))

    try:
        node.grade(order, checkout, lambda sha: _wait(archives[sha]), tell, is_last=False)
    except (OSError, RuntimeError) as error:
        if not is_of_disk(error):
            raise
        why = f"{type(error).__name__}: {error}"
        _wait(owner.push.remote(key, {"lost": why, "full": spot["node"], "address": spot["started"]}))


def describe_node(owner: Any, ports: Mapping[str, str], archives: Collection[str] | None) -> dict[str, Any]:
    """Return what the node of this task has for grades, see `coral.cluster.node_report`. `closed` also names the
    workers of Ray if the owner cannot be reached from here: grades send their events to it."""
    found = report(ports, archives)
    if not ray.wait([owner.archives.remote()], timeout=PORT_SECONDS)[0]:
        found["closed"].append("the workers of Ray")
    return found


def _unmade(error: ray.exceptions.RuntimeEnvSetupError) -> dict[str, Any]:
    """Return the event that ends a grade because Ray cannot make its environment. `lost`: the node and the cause;
    `message`: Ray's whole message. The cause is the last line of the message. If that line only names an exception, the
    cause is the first sentence."""
    message = str(error.error_message or error).strip()
    node, text = re.fullmatch(r"(?:\[Node ([^\]]+)\] )?(.*)", message, re.DOTALL).groups()  # type: ignore[union-attr]
    last = text.splitlines()[-1].strip()
    why = text.split(". ")[0] if last.replace(".", "").isidentifier() else last
    where = f" on {node}" if node else ""
    return {"lost": f"its environment cannot be made{where}: {why}", "unmade": True, "message": message[-MOST_TEXT:]}


def _wait(ref: ray.ObjectRef[Any]) -> Any:
    """Return what the reference stands for. In ray.get, a task gives its processors to another one meanwhile, and has
    them back at once afterwards: two grades would then share them."""
    return ref.future().result()


class Owner:
    def __init__(self, run: str, lease: float) -> None:
        """Begin without grades. `run`: the name of its run. `lease`: seconds after which the actor ends, with its
        grades, if no bridge has asked for news."""
        self._run = run
        self._grades: dict[str, _Grade] = {}
        self._archives: dict[str, ray.ObjectRef[Any]] = {}
        self._changed, self._asked = threading.Condition(), 0
        self._heard, self._lease = time.monotonic(), lease
        self._driver = ray.get_runtime_context().get_job_id()
        self._task = ray.remote(run_grade)  # made once: Ray sends each one made to the head, and workers fetch it
        threading.Thread(target=self._end_without_word, daemon=True).start()

    def has_grade(self, key: str) -> bool:
        with self._changed:
            self._asked += 1
            self._changed.notify_all()
            return key in self._grades

    def keep(self, sha: str, data: bytes) -> None:
        self._archives[sha] = ray.put(data)

    def drop(self, sha: str) -> None:
        """Forget an archive. Grades that were submitted still have it."""
        self._archives.pop(sha, None)

    def submit(
        self, key: str, order: dict[str, Any], checkout: bytes, options: Mapping[str, Any], driver: str
    ) -> list[str]:
        """Submit a grade. Return the hashes of archives that it needs and that must be kept here first: then it is not
        submitted. `driver`: Ray's id of the calling process. If another driver has made this actor and it has no
        grades, it ends, so that the caller makes a new one: that driver has ended, and Ray ends each worker of an
        ended driver after one task, so that every grade would wait until a worker has started."""
        with self._changed:
            if key in self._grades:
                return []
            if driver != self._driver and not self._grades:
                ray.actor.exit_actor()
            archives = {sha: self._archives.get(sha) for sha in (order["archive"], order["base"]) if sha}
            if missing := [sha for sha, archive in archives.items() if archive is None]:
                return missing
            grade = self._grades[key] = _Grade()
        me = ray.get_runtime_context().current_actor
        try:
            task = self._task.options(max_retries=0, **options)
            grade.ref = task.remote(me, key, order, checkout, archives)
        # Such as an amount that Ray does not divide so finely, or a list of packages that it cannot read.
        except (TypeError, ValueError, OSError, RuntimeError) as error:
            self._end(key, {"refused": f"Ray refuses such a grade: {error}"})
            return []
        except BaseException:  # the store has no room for the checkout: the caller submits it again
            with self._changed:
                self._grades.pop(key, None)
            raise
        grade.ref.future().add_done_callback(lambda done: self._ended(key, done.exception()))
        with self._changed:  # after the task is on its way, since the answer takes this process as long
            self._asked += 1
            self._changed.notify_all()
        return []

    def _ended(self, key: str, error: BaseException | None) -> None:
        error = getattr(error, "cause", None) or error  # what the node raised, without the way that it took to here
        reason = "its worker ended" if error is None else f"{type(error).__name__}: {str(error).strip()}"
        if isinstance(error, ray.exceptions.RuntimeEnvSetupError):
            self._end(key, _unmade(error))
        else:
            self.lose(key, reason)

    def push(self, key: str, event: dict[str, Any]) -> None:
        with self._changed:
            if (grade := self._grades.get(key)) is not None and not grade.over:
                grade.events.append(event)
                grade.over = bool(event.keys() & {"ended", "lost"})
                self._changed.notify_all()

    def lose(self, key: str, reason: str) -> None:
        """Record that a grade was lost, unless its result is here already."""
        self._end(key, {"lost": reason})

    def _end(self, key: str, event: dict[str, Any]) -> None:
        self.push(key, event)
        with self._changed:
            if (grade := self._grades.get(key)) is not None:
                grade.over = True

    def news(self, cursors: Mapping[str, tuple[int, bool]], seconds: float) -> dict[str, tuple[int, list[Any]]]:
        """Return the new events of grades by key, with the number of the first, as soon as there are any; nothing after
        `seconds`, or when another grade comes. `cursors`: by key, how many events the bridge has had, and whether it
        has submitted the grade: one that was submitted and is unknown here is reported as lost."""
        limit = time.monotonic() + seconds
        with self._changed:
            self._heard, asked = time.monotonic(), self._asked
            while True:
                found = {key: (at, new) for key, (at, known) in cursors.items() if (new := self._since(key, at, known))}
                left = limit - time.monotonic()
                if found or left <= 0 or asked != self._asked:
                    return found
                self._changed.wait(left)

    def _since(self, key: str, at: int, known: bool) -> list[Any]:
        if (grade := self._grades.get(key)) is None:
            return [{"lost": "the process that owned it ended"}] if known else []
        return grade.events[at:]

    def keys(self) -> list[str]:
        return list(self._grades)

    def described(self) -> dict[str, Any]:
        """Return how many grades of the run have begun on a node, and how many wait."""
        with self._changed:
            begun = [bool(grade.events) for grade in self._grades.values() if not grade.over]
        return {"run": self._run, "running": sum(begun), "waiting": len(begun) - sum(begun)}

    def archives(self) -> list[str]:
        """Return the hashes of the archives that nodes may fetch from here."""
        return list(self._archives)

    def cancel(self, key: str) -> None:
        """End a grade, if it has not ended, and forget it."""
        with self._changed:
            grade = self._grades.pop(key, None)
        has_result = grade is not None and any("ended" in event for event in grade.events)
        if grade is not None and grade.ref is not None and not has_result:
            ray.cancel(grade.ref, force=True)  # a lost grade too: its node may come back

    def _end_without_word(self) -> None:
        """End this process at the end of the lease. While the head does not answer, no bridge can renew it."""
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        while time.monotonic() < self._heard + self._lease:
            time.sleep(1)
            if time.monotonic() > self._heard + SILENT_SECONDS and not _answers(host, int(port)):
                self._heard = time.monotonic() - SILENT_SECONDS
        os._exit(1)


def _answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


class _Grade:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.over = False
        self.ref: ray.ObjectRef[Any] | None = None
