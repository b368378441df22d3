"""Starts a Ray cluster on this machine by the scripts in examples/clusters, for the benchmarks of grades on Ray."""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.arena import HERE, MARK, Arena, arena, wait_until

SCRIPTS = HERE.parent / "examples" / "clusters"
RAY = Path(sys.executable).with_name("ray")
BEGIN_SECONDS = 120.0
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET


class RayNodes:
    """A Ray head and its nodes. `address`: host and port of the head. Their processes end when the arena is closed."""

    def __init__(self, place: Arena) -> None:
        """Start the head, which runs no grades."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        self._count, folder = 0, place.root / "cluster"
        self.variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
        self._environment = {
            **os.environ,
            **self.variables,
            MARK: str(place.notes),
            "CORAL_CLUSTER": str(folder),
            "PATH": f"{RAY.parent}{os.pathsep}{os.environ['PATH']}",
            "PORT": str(port),
            "TMPDIR": str(place.root),
        }
        self._log, self._sessions = place.root / "nodes.log", place.sessions
        self._run("head.sh", "127.0.0.1")
        self._wait_for_nodes()

    def begin_node(self, slots: int) -> None:
        """Start a node with two processors and `slots` units of the custom resource `slot`."""
        self._count += 1
        first = 20_000 + 1000 * self._count  # on one machine, nodes need ports of their own
        self._run(
            "node.sh", self.address, f"--node-ip-address=127.0.0.{self._count + 1}", "--num-cpus=2",
            f"--resources={json.dumps({'slot': slots})}", "--memory=500000000", "--object-store-memory=80000000",
            f"--min-worker-port={first}", f"--max-worker-port={first + 999}",
        )  # fmt: skip

    def add_node(self, slots: int) -> None:
        """Start such a node and wait until the cluster lists it."""
        self.begin_node(slots)
        self._wait_for_nodes()

    def _run(self, script: str, *words: str) -> None:
        with self._log.open("ab") as log:
            child = subprocess.Popen(
                ("sh", SCRIPTS / script, *words), env=self._environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
            )  # fmt: skip
        self._sessions.add(child.pid)

    def _wait_for_nodes(self) -> None:
        line = (RAY, "status", f"--address={self.address}")

        def are_there() -> bool:
            shown = subprocess.run(line, env=self._environment, capture_output=True, text=True, check=False).stdout
            return len(re.findall(r"^ \d+ node_", shown, re.MULTILINE)) > self._count

        wait_until(are_there, BEGIN_SECONDS, f"node {self._count} of the cluster")


@contextmanager
def ray_nodes() -> Iterator[RayNodes]:
    """Start a cluster that has only a head, which runs no grades. Until it ends, the environment of this process has
    the variables with which Ray connects to it."""
    _leave_the_network()
    with arena() as place:
        made = RayNodes(place)
        before = {name: os.environ.get(name) for name in made.variables}
        os.environ.update(made.variables)
        try:
            yield made
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


def _leave_the_network() -> None:
    """As root, move this process and all that it starts into a network that has only the loopback interface, because
    Ray listens on every interface. Without root, the token alone protects the cluster."""
    if os.geteuid() == 0 and not ctypes.CDLL(None).unshare(_NEW_NETWORK):
        subprocess.run(("ip", "link", "set", "lo", "up"), check=True)
