"""A real Ray cluster on loopback: a head and nodes, each with its processes, which a test may kill."""

import contextlib
import ctypes
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from real_runs import wait_until

MARK = "CORAL_TEST_CLUSTER"
GRADE = b"CORAL_GRADE="
TRIES = 4  # Ray gives a node 30 seconds to begin, whatever else its machine does
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_UP = "ip", "link", "set", "lo", "up"


def leave_the_network() -> None:
    """Ray listens on every interface: where root may, this process and all that it starts have loopback alone. It has a
    token in any case."""
    if os.geteuid() == 0 and not ctypes.CDLL(None).unshare(_NEW_NETWORK):
        subprocess.run(_UP, check=True)


class RayCluster:
    """`address`: its head, which runs no grade. The variables that let a driver in are set in this process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._count = folder, 0
        self._head: subprocess.Popen[bytes] | None = None  # one that was started again
        self._temp = tempfile.mkdtemp(prefix="ray-")  # short: Ray's sockets are in it
        self.name = secrets.token_hex(8)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        token = folder / "token"
        token.write_text(secrets.token_hex(24))
        token.chmod(0o600)
        checks = {"period": 500, "timeout": 500, "initial_delay": 1000}
        self.env = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # else a busy machine lets them starve
            "RAY_health_check_failure_threshold": "4",
            "RAY_gcs_storage": "rocksdb",
            "RAY_gcs_storage_path": f"{self._temp}/head",
            **{f"RAY_health_check_{name}_ms": str(value) for name, value in checks.items()},
        }
        port = self.address.rpartition(":")[2]
        self._start(
            "127.0.0.1", "--head", f"--port={port}", "--include-dashboard=false", "--num-cpus=0",
            f"--temp-dir={self._temp}",
        )  # fmt: skip

    @contextlib.contextmanager
    def without_head(self) -> Iterator[None]:
        """Kill the process that leads the cluster, and start it again at the end of the context. It has its state on
        the disk."""
        (pid,) = [pid for pid in self._processes() if _file(pid, "cmdline").split(b"\0")[0].endswith(b"/gcs_server")]
        line = _file(pid, "cmdline").split(b"\0")[:-1]
        env = dict(part.split(b"=", 1) for part in _file(pid, "environ").split(b"\0") if b"=" in part)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not _file(pid, "cmdline"), what="the end of the head")
        try:
            yield
        finally:
            quiet = subprocess.DEVNULL
            self._head = subprocess.Popen(
                line, env=env, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
            )

    def add_node(self, *options: str) -> str:
        """The address of a new node with two processors. One at a time: two that begin at once may wait for ever."""
        self._count += 1
        address = f"127.0.0.{self._count + 1}"
        self._start(address, f"--address={self.address}", "--num-cpus=2", *options)
        return address

    def _start(self, address: str, *options: str) -> None:
        first = 20_000 + 1000 * int(address.rpartition(".")[2])
        line = [
            str(Path(sys.executable).with_name("ray")), "start", f"--node-ip-address={address}",
            "--memory=500000000", "--object-store-memory=80000000",
            f"--min-worker-port={first}", f"--max-worker-port={first + 999}", *options,
        ]  # fmt: skip
        own = Path(self._temp, address)  # nodes share no folder for temporary files
        own.mkdir(exist_ok=True)
        env = {**os.environ, **self.env, MARK: self.name, "TMPDIR": str(own)}
        for _ in range(TRIES):
            done = subprocess.run(line, env=env, capture_output=True, text=True, timeout=200, check=False)
            if done.returncode == 0:
                return
            if "--head" in options:  # what it has begun would refuse the next try
                self._kill_all()
            self._kill_raylet(address)
        raise AssertionError(done.stdout + done.stderr)

    def kill_node(self, address: str) -> None:
        """kill -9 for its raylet, as where a machine is lost; Ray ends the rest."""
        assert self._kill_raylet(address), f"no node {address}"

    def _kill_raylet(self, address: str) -> bool:
        node = f"--node_ip_address={address}".encode()
        for pid in self._processes():
            words = _file(pid, "cmdline").split(b"\0")
            if words[0].endswith(b"/raylet") and node in words:
                os.kill(pid, signal.SIGKILL)
                return True
        return False

    def address_of(self, node: str) -> str:
        """The address of the node with this id."""
        for pid in self._processes():
            words = _file(pid, "cmdline").split(b"\0")
            if words[0].endswith(b"/raylet") and f"--node_id={node}".encode() in words:
                (found,) = (word for word in words if word.startswith(b"--node_ip_address="))
                return found.partition(b"=")[2].decode()
        raise AssertionError(f"no node {node}")

    def graded(self) -> list[int]:
        """The processes of grades on all nodes."""
        return pids_with(GRADE)

    def owners(self) -> list[int]:
        """The processes of the actors that own grades."""
        return [pid for pid in self._processes() if _file(pid, "cmdline").startswith(b"ray::Owner")]

    def hosts(self) -> list[int]:
        """The processes of the actors that run agents."""
        return [pid for pid in self._processes() if _file(pid, "cmdline").startswith(b"ray::RayHost")]

    def guards(self) -> list[int]:
        return [pid for pid in self._processes() if b"coral.cluster.guard" in _file(pid, "cmdline")]

    def wait_until_idle(self) -> None:
        wait_until(lambda: not self.graded() and not self.guards(), 30, "the end of all grades on the nodes")

    def _processes(self) -> list[int]:
        mark = f"{MARK}={self.name}".encode()
        return [pid for pid in _pids() if mark in _file(pid, "environ").split(b"\0")]

    def close(self) -> None:
        self._kill_all()
        if self._head is not None:
            self._head.wait()
        subprocess.run(["rm", "-rf", self._temp], check=True)

    def _kill_all(self) -> None:
        def killed() -> bool:
            pids = self._processes()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        wait_until(killed, 30, "the end of the cluster")


def pids_with(start: bytes) -> list[int]:
    """The processes that have a variable of this name, or with this beginning of its value."""
    return [pid for pid in _pids() if any(part.startswith(start) for part in _file(pid, "environ").split(b"\0"))]


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _file(pid: int, name: str) -> bytes:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return b"" if state == b"Z" else Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
