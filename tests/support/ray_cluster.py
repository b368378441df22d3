"""A real Ray cluster on loopback: a head and nodes, each with its processes, which a test may kill."""

import contextlib
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from real_runs import wait_until

MARK = "CORAL_TEST_CLUSTER"
GRADE, NODE = b"CORAL_GRADE=", b"--node_ip_address="
PORTS = 40  # ranges of ports: so many nodes may live at the same time
TRIES = 4  # Ray gives a node 30 seconds to begin, whatever else its machine does
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
OCCUPY = """
import sys
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

class Held:
    def wait_for_room(self):
        pass

ray.init(sys.argv[1], namespace="occupied", log_to_driver=False, logging_level="ERROR")
there = NodeAffinitySchedulingStrategy(sys.argv[2], soft=False)
held = ray.remote(Held).options(num_cpus=2, scheduling_strategy=there).remote()
ray.get(held.wait_for_room.remote())
print("occupied", flush=True)
sys.stdin.read()
"""
_UP = "ip", "link", "set", "lo", "up"
_is_alone = False  # whether the network is this process's alone


def leave_the_network() -> None:
    """Put this process, and all that it starts, into a network with loopback alone, where root may: Ray listens on
    every interface. Its clusters have a token in any case."""
    global _is_alone
    if os.geteuid() == 0 and not ctypes.CDLL(None).unshare(_NEW_NETWORK):
        subprocess.run(_UP, check=True)
        _is_alone = True


@contextlib.contextmanager
def slow_link(rate: str) -> Iterator[None]:
    """Let no more through the network of this process than so much, such as 4mbit, until the end of the context. Skips
    the test where that is not possible, or where the network is not this process's alone."""
    if not _is_alone:
        pytest.skip("NOT RUN: the network is not the test's alone")
    limit = ("tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", rate, "burst", "256kb", "latency", "5s")
    if shutil.which("tc") is None or subprocess.run(limit, capture_output=True, check=False).returncode:
        pytest.skip("NOT RUN: there is no traffic control here")
    try:
        yield
    finally:
        subprocess.run(("tc", "qdisc", "del", "dev", "lo", "root"), check=True)


class RayCluster:
    """`address`: its head, which runs no grade. The variables that let a driver in are set in this process."""

    def __init__(self, folder: Path, grows_to: int = 0) -> None:
        """Start a head. `grows_to`: how many nodes of two processors its autoscaler may add."""
        self.folder, self._count = folder, 0
        self._sessions: set[int] = set()
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
            f"--temp-dir={self._temp}", *(self._autoscaler(grows_to) if grows_to else ()),
        )  # fmt: skip

    def _autoscaler(self, most: int) -> tuple[str, ...]:
        """Return the options of a head that adds nodes on this machine for what waits."""
        self.env |= {"RAY_FAKE_CLUSTER": "1", "AUTOSCALER_UPDATE_INTERVAL_S": "1"}
        node = {"CPU": 2, "object_store_memory": 80_000_000}
        types = {
            "ray.head.default": {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0},
            "grader": {"resources": node, "node_config": {}, "min_workers": 0, "max_workers": most},
        }
        config = {
            "cluster_name": "test",
            "max_workers": most,
            "idle_timeout_minutes": 5,
            "provider": {
                "type": "fake_multinode",
                "gcs_address": self.address,
                "disable_node_updaters": True,
                "use_node_id_as_ip": True,
            },
            "available_node_types": types,
            "head_node_type": "ray.head.default",
            "upscaling_speed": 1.0,
            **{key: {} for key in ("auth", "file_mounts")},
            **{key: [] for key in ("cluster_synced_files", "worker_setup_commands", "worker_start_ray_commands")},
        }
        path = self.folder / "autoscaling.json"
        path.write_text(json.dumps(config))
        return (f"--autoscaling-config={path}",)

    @contextlib.contextmanager
    def without_head(self) -> Iterator[None]:
        """Kill the process that leads the cluster, and start it again at the end of the context. It has its state on
        the disk."""
        (pid,) = [pid for pid in self._processes() if _file(pid, "cmdline").split(b"\0")[0].endswith(b"/gcs_server")]
        line = _file(pid, "cmdline").split(b"\0")[:-1]
        env = dict(part.split(b"=", 1) for part in _file(pid, "environ").split(b"\0") if b"=" in part)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not _file(pid, "cmdline"), what="the end of the head")
        if self._head is not None:
            self._head.wait()
        try:
            yield
        finally:
            quiet = subprocess.DEVNULL
            self._head = subprocess.Popen(
                line, env=env, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True
            )

    def add_node(self, *options: str, python: str = sys.executable) -> str:
        """Add a node with two processors; returns its address. To be called for one node at a time: two that begin at
        once may wait for ever."""
        self._count += 1
        address = f"127.0.0.{self._count + 1}"
        self._start(address, f"--address={self.address}", "--num-cpus=2", *options, python=python)
        return address

    def _start(self, address: str, *options: str, python: str = sys.executable) -> None:
        first = 20_000 + 1000 * (int(address.rpartition(".")[2]) % PORTS)
        line = [
            python, "-P", "-m", "ray.scripts.scripts", "start", f"--node-ip-address={address}",
            "--memory=500000000", "--object-store-memory=80000000",
            f"--min-worker-port={first}", f"--max-worker-port={first + 999}", *options,
        ]  # fmt: skip
        own = Path(self._temp, address)  # nodes share no folder for temporary files
        own.mkdir(exist_ok=True)
        if "--head" not in options:
            line.append(f"--temp-dir={own}")
        env = {**os.environ, **self.env, MARK: self.name, "TMPDIR": str(own)}
        for _ in range(TRIES):
            log = own / "start.log"
            with log.open("wb") as output:
                process = subprocess.Popen(line, env=env, stdout=output, stderr=output, start_new_session=True)
            self._sessions.add(process.pid)
            if process.wait(timeout=200) == 0:
                return
            if "--head" in options:  # what it has begun would refuse the next try
                self._kill_all()
            self._signal_raylet(address, signal.SIGKILL)
        raise AssertionError(log.read_text())

    def kill_node(self, address: str) -> None:
        """Kill the raylet of a node, as where a machine is lost; Ray ends the rest."""
        assert self._signal_raylet(address, signal.SIGKILL), f"no node {address}"

    def remove_node(self, address: str) -> None:
        """Kill a node that no later test needs, and wait until the cluster has noticed: before, it places there what
        begins, which is then lost."""
        head = import_module("ray._raylet").GcsClient(address=self.address)
        self.kill_node(address)

        def is_noticed() -> bool:
            found = [node for node in head.get_all_node_info().values() if node.node_manager_address == address]
            return all(node.state == node.DEAD for node in found)

        wait_until(is_noticed, what=f"the end of the node {address}")

    @contextlib.contextmanager
    def frozen(self, address: str) -> Iterator[None]:
        """Stop the raylet of a node, which then answers nobody, until the end of the context. It ends by itself once it
        finds that the cluster has given it up; its node is replaced."""
        assert self._signal_raylet(address, signal.SIGSTOP), f"no node {address}"
        try:
            yield
        finally:
            self._signal_raylet(address, signal.SIGCONT)
        wait_until(lambda: address not in self.nodes(), 60, "the end of the node that was given up")
        self.add_node()

    @contextlib.contextmanager
    def spoiled_nodes(self) -> Iterator[None]:
        """Let the folder of grades be writable for everybody, on all nodes, until the end of the context."""
        folders = [Path(self._temp, address, f"coral-{os.getuid()}") for address in self.nodes()]
        for folder in folders:
            folder.mkdir(mode=0o700, exist_ok=True)
            folder.chmod(0o777)
        try:
            yield
        finally:
            for folder in folders:
                folder.chmod(0o700)

    @contextlib.contextmanager
    def full_disk(self, address: str) -> Iterator[None]:
        """Fill the disk on which a node unpacks grades, until the end of the context. Skips the test where this process
        may not mount one."""
        folder = Path(self._temp, address, f"coral-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
        mount = ("mount", "-t", "tmpfs", "-o", "size=16k,mode=700", "tmpfs", str(folder))
        if os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("NOT RUN: no disk can be mounted here")
        try:
            yield
        finally:
            subprocess.run(("umount", "-l", str(folder)), check=True)

    def _signal_raylet(self, address: str, number: signal.Signals) -> bool:
        node = NODE + address.encode()
        for pid in self._processes():
            words = _file(pid, "cmdline").split(b"\0")
            if words[0].endswith(b"/raylet") and node in words:
                os.kill(pid, number)
                return True
        return False

    def nodes(self) -> list[str]:
        """Return the addresses of the nodes that run grades and are alive."""
        words = [_file(pid, "cmdline").split(b"\0") for pid in self._processes()]
        raylets = [line for line in words if line[0].endswith(b"/raylet")]
        named = (word.partition(b"=")[2].decode() for line in raylets for word in line if word.startswith(NODE))
        return sorted(address for address in named if address != "127.0.0.1")

    def workers(self) -> list[int]:
        """Return the processes of Ray that have a grade."""
        return [pid for pid in self._processes() if _file(pid, "cmdline").startswith(b"ray::run_grade")]

    def graded(self) -> list[int]:
        """Return the processes of grades on all nodes, without those that wait for a grade to come."""
        return [pid for pid in _pids() if (place := _place(pid)) and not _is_spare(place)]

    def archives(self) -> set[str]:
        """Return the names of what the nodes keep for later grades."""
        return {path.name for path in Path(self._temp).glob("*/coral-*/*/archives/*")}

    def address_of(self, node: str) -> str:
        """Return the address of the node with this id."""
        for pid in self._processes():
            words = _file(pid, "cmdline").split(b"\0")
            if words[0].endswith(b"/raylet") and f"--node_id={node}".encode() in words:
                (found,) = (word for word in words if word.startswith(NODE))
                return found.partition(b"=")[2].decode()
        raise AssertionError(f"no node {node}")

    @contextlib.contextmanager
    def occupied(self, node: str) -> Iterator[None]:
        """Use all processors of the node with this id, until the end of the context."""
        line = [sys.executable, "-P", "-c", OCCUPY, self.address, node]
        held = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **self.env})
        assert held.stdin is not None
        assert held.stdout is not None
        try:
            assert held.stdout.readline() == b"occupied\n"
            yield
        finally:
            held.stdin.close()
            held.wait(60)
            held.stdout.close()

    def owners(self) -> list[int]:
        """Return the processes of the actors that own grades."""
        return [pid for pid in self._processes() if _file(pid, "cmdline").startswith(b"ray::Owner")]

    def hosts(self) -> list[int]:
        """Return the processes of the actors that run agents."""
        return [pid for pid in self._processes() if _file(pid, "cmdline").startswith(b"ray::RayHost")]

    def guards(self) -> list[int]:
        """Return the processes that run grades, without those that wait for a grade to come."""
        spare = {_guard_of(folder) for folder in self._folders_of_grades() if _is_spare(bytes(folder))}
        forked = [pid for pid in self._processes() if b"coral.cluster.guard_server" in _file(pid, "cmdline")]
        return [pid for pid in forked if _has_own_session(pid) and pid not in spare]

    def _folders_of_grades(self) -> list[Path]:
        return list(Path(self._temp).glob("*/coral-*/*/grades/*"))

    def wait_until_idle(self) -> None:
        wait_until(lambda: not self.graded() and not self.guards(), what="the end of all grades on the nodes")

    def _processes(self) -> list[int]:
        mark = f"{MARK}={self.name}".encode()
        return [pid for pid in _pids() if mark in _file(pid, "environ").split(b"\0") or self._is_in_session(pid)]

    def _is_in_session(self, pid: int) -> bool:
        """Return whether a process is one of the cluster by its session: a new name may have overwritten its variables,
        and those that make an environment are started without any."""
        with contextlib.suppress(ProcessLookupError):
            return os.getsid(pid) in self._sessions
        return False

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

        wait_until(killed, what="the end of the cluster")


def _place(pid: int) -> bytes:
    """Return the folder of the grade that this process belongs to; empty if it does not belong to one."""
    marks = (part for part in _file(pid, "environ").split(b"\0") if part.startswith(GRADE))
    return next(marks, b"").removeprefix(GRADE)


def _is_spare(place: bytes) -> bool:
    """Return whether this is the folder of a guard that has no grade yet."""
    folder = Path(os.fsdecode(place))
    return folder.is_dir() and not (folder / "artifacts").exists()


def _guard_of(folder: Path) -> int:
    """Return the process of the guard of a grade; 0 if it has not begun."""
    try:
        return int(json.loads((folder / "guard.json").read_text())["pid"])
    except (OSError, ValueError):
        return 0


def _has_own_session(pid: int) -> bool:
    """Return whether a process has a session of its own: a guard has, and the process that forks guards has not."""
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid) == pid
    return False


def attempt_of(pid: int) -> int | None:
    """Return which attempt this process of a grade on a node is for; None if it is gone."""
    try:
        return int(json.loads((Path(os.fsdecode(_place(pid))) / "spec.json").read_text())["attempt"])
    except (OSError, ValueError):
        return None


def pids_with(start: bytes) -> list[int]:
    """Return the processes that have a variable of this name, or with this beginning of its value."""
    return [pid for pid in _pids() if any(part.startswith(start) for part in _file(pid, "environ").split(b"\0"))]


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _file(pid: int, name: str) -> bytes:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return b"" if state == b"Z" else Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
