"""The bridge: the one process of a run that imports Ray and speaks to it. When it dies, no grade is lost.

It submits the grades of local clients (`coral.cluster.remote_grade`) through the run's owner on the cluster
(`coral.cluster.owner`) and sends the events of the grades back to the clients. One bridge works at a time: another
waits for its lock. It ends when its standard input has ended and no client is left.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import select
import socket
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from coral.cluster import wire
from coral.cluster.shipping import Shipping

CONNECT_SECONDS = 20.0
LEASE_SECONDS = 120.0  # for which an owner lives without a bridge
LINGER_SECONDS = 10.0  # for which the bridge waits for a client, once nobody supervises the run
UNCLAIMED_SECONDS = 10.0  # from the start of the bridge until grades that no client asks for are ended
NEWS_SECONDS = 1.0
NAMESPACE = "coral"
_REFUSED = ("InvalidAuthToken", "Unauthenticated", "authentication token", "Version mismatch")


def main(folder: str, address: str) -> None:
    place = Path(folder)
    threading.excepthook = _end
    if _locked(place):
        _Bridge(place, address).serve()


def _end(failed: threading.ExceptHookArgs) -> None:
    """End this process when one of its threads fails, with the reason in its log: another bridge goes on."""
    sys.excepthook(failed.exc_type, failed.exc_value or failed.exc_type(), failed.exc_traceback)
    sys.stderr.flush()
    os._exit(5)


def _locked(folder: Path) -> bool:
    """Wait for the lock, which this process then holds until it ends. Return False if standard input gets a line or its
    end before that: no other bridge is needed then."""
    lock = os.open(folder / wire.LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if select.select([0], [], [], 0.2)[0]:
            return False


class _Client:
    """The connection of a grade's local process."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self._sending = connection, threading.Lock()
        self.tried: _Try | None = None  # the last try that it has asked for

    def send(self, **message: Any) -> None:
        with self._sending, contextlib.suppress(OSError):  # the client has ended, which `_serve` notices
            self.connection.sendall(wire.encoded(message))


class _Try:
    """One try of a grade, for a client. `seen`: how many events of the try the client has received. The next try is
    another object, so that a thread that still holds this one does not mistake its state for that of the next."""

    def __init__(self, key: str, client: _Client, seen: int) -> None:
        self.key, self.client, self.seen = key, client, seen
        self.node = ""
        self.is_submitted = False


class _Bridge:
    def __init__(self, folder: Path, address: str) -> None:
        self._folder, self._address = folder, address
        self._tries: dict[str, _Try] = {}
        self._changed, self._arrived = threading.Lock(), threading.Event()  # `_arrived`: a try was added
        self._shipping = Shipping()
        self._began = self._last_client = time.monotonic()
        self._connect()
        self._owner = self._new_owner()
        self._nodes: list[dict[str, Any]] = self._ray.nodes()

    # The cluster.

    def _connect(self) -> None:
        """Connect to the cluster, or end this process and say why: Ray may wait for ever for a head that is missing or
        refuses."""
        host, _, port = self._address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as error:
            self._fail(f"the head of the cluster at {self._address} cannot be reached: {error.strerror or error}")
        giving_up = threading.Timer(CONNECT_SECONDS, self._give_up)
        giving_up.daemon = True
        giving_up.start()
        try:
            self._ray: Any = import_module("ray")
            for name in ("owner", "node"):
                self._ray.cloudpickle.register_pickle_by_value(import_module(f"coral.cluster.{name}"))
            self._ray.init(self._address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
        except (RuntimeError, ConnectionError, ValueError, ImportError) as error:
            self._fail(f"the cluster at {self._address} refuses: {str(error).strip().splitlines()[0]}")
        giving_up.cancel()
        (self._folder / wire.TROUBLE).unlink(missing_ok=True)

    def _give_up(self) -> None:
        log = (self._folder / wire.LOG).read_text("utf-8", "replace")[-20_000:].splitlines()
        why = [line.strip() for line in log if any(word in line for word in _REFUSED)]
        self._fail(
            f"the cluster at {self._address} does not let us in within {CONNECT_SECONDS:g} s"
            + (f": {why[-1][:300]}" if why else ": is RAY_AUTH_TOKEN_PATH the cluster's token?")
        )

    def _fail(self, text: str) -> None:
        unfinished = self._folder / f".{wire.TROUBLE}"
        unfinished.write_text(f"{text}\n", encoding="utf-8")
        unfinished.replace(self._folder / wire.TROUBLE)
        os._exit(3)

    def _new_owner(self) -> Any:
        ray = self._ray
        strategies = import_module("ray.util.scheduling_strategies")
        here = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        owner = import_module("coral.cluster.owner")
        made = ray.remote(owner.Owner).options(
            name=f"coral-{hashlib.sha256(str(self._folder).encode()).hexdigest()[:16]}",
            lifetime="detached", get_if_exists=True, num_cpus=0, max_concurrency=owner.CALLS,
            scheduling_strategy=here,
        )  # fmt: skip
        return made.remote(LEASE_SECONDS)

    def _call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the owner. An owner that has ended is replaced; clients learn that its grades are lost."""
        for _ in range(3):
            owner = self._owner
            try:
                return self._ray.get(getattr(owner, method).remote(*arguments))
            except self._ray.exceptions.RayActorError:
                with self._changed:
                    if owner is self._owner:
                        self._owner = self._new_owner()
        return os._exit(4)  # another bridge begins anew

    def _watch_nodes(self) -> None:
        """Report grades on dead nodes as lost, for Ray keeps such a task pending; end those that no client asks for."""
        while True:
            self._nodes = self._ray.nodes()
            dead = {node["NodeID"] for node in self._nodes if not node["Alive"]}
            for tried in self._present():
                if tried.node in dead:
                    tried.node = ""
                    self._call("lose", tried.key, "its node died")
            if self._began and time.monotonic() > self._began + UNCLAIMED_SECONDS:
                self._began = 0.0
                for key in set(self._call("keys")) - {tried.key for tried in self._present()}:
                    self._call("cancel", key)
            time.sleep(1)

    # The clients.

    def serve(self) -> None:
        listening = wire.listen(self._folder)
        for work in (self._watch_nodes, self._tell_news):
            threading.Thread(target=work, daemon=True).start()
        supervised, lingers = True, LINGER_SECONDS
        while True:
            watched: list[Any] = [listening, *([0] if supervised else [])]
            ready, _, _ = select.select(watched, [], [], 0.1)
            if 0 in ready:
                supervised = False
                lingers = 0.0 if os.read(0, 10) else LINGER_SECONDS
            if listening in ready:
                client = _Client(listening.accept()[0])
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()
            if self._tries:
                self._last_client = time.monotonic()
            elif not supervised and time.monotonic() >= self._last_client + lingers:
                break
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(self._owner)
        self._ray.shutdown()

    def _serve(self, client: _Client) -> None:
        connection = client.connection
        with contextlib.suppress(OSError), connection.makefile("rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                self._submit(client, wire.decoded(line))
        connection.close()
        if client.tried is not None:
            self._forget(client.tried)  # the client has its result, or was ended

    def _submit(self, client: _Client, message: dict[str, Any]) -> None:
        key, order, asked = message["submit"], message["order"], message["resources"]
        if refusal := too_large(asked, self._nodes):
            client.send(refused=refusal)
            return
        if client.tried is not None:
            self._forget(client.tried)
        tried = client.tried = _Try(key, client, message["seen"])
        with self._changed:
            self._tries[key] = tried
        self._arrived.set()
        if not self._call("has_grade", key):
            sha, archive = self._shipping.archive(Path(order["places"]["private"]))
            if not self._call("has", sha):
                self._call("keep", sha, archive)
            order = {**order, "archive": sha}
            self._call("submit", key, order, self._shipping.checkout(order), sha, _options(asked))
        tried.is_submitted = True

    def _forget(self, tried: _Try) -> None:
        """End a try, unless its client has come back by another connection meanwhile."""
        with self._changed:
            if self._tries.get(tried.key) is not tried:
                return
            del self._tries[tried.key]
        self._call("cancel", tried.key)

    def _present(self) -> list[_Try]:
        with self._changed:
            return list(self._tries.values())

    def _tell_news(self) -> None:
        while True:
            if not (present := self._present()):
                self._arrived.wait()
                self._arrived.clear()
                continue
            cursors = {tried.key: (tried.seen, tried.is_submitted) for tried in present}
            for key, (at, events) in self._call("news", cursors, NEWS_SECONDS).items():
                with self._changed:
                    tried = self._tries.get(key)
                if tried is None:
                    continue
                new = events[max(tried.seen - at, 0) :]
                tried.seen += len(new)
                tried.node = next((event["node"] for event in new if "node" in event), tried.node)
                if new:
                    tried.client.send(events=new)


def _options(asked: dict[str, float]) -> dict[str, Any]:
    own = {"CPU": "num_cpus", "GPU": "num_gpus", "memory": "memory"}
    named = {own[name]: amount for name, amount in asked.items() if name in own}
    others = {name: amount for name, amount in asked.items() if name not in own and amount}
    return {**named, "resources": others, "scheduling_strategy": "SPREAD"}


_UNITS = {"CPU": "CPUs", "GPU": "GPUs", "memory": "bytes of memory"}


def too_large(asked: dict[str, float], nodes: list[dict[str, Any]]) -> str:
    """Return why no node can give these resources, even without other work; empty if one can. Ray would wait for
    ever."""
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    if any(all(node.get(name, 0) >= amount for name, amount in asked.items()) for node in alive):
        return ""
    for name, amount in asked.items():
        largest = max((node.get(name, 0) for node in alive), default=0)
        if largest < amount:
            return f"it needs {amount:g} {_UNITS.get(name, name)}; the largest node has {largest:g}"
    return f"no node has {', '.join(f'{amount:g} {_UNITS.get(name, name)}' for name, amount in asked.items())} at once"
