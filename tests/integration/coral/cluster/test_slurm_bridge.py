"""The bridge to Slurm as a process of its own, with jobs of this machine that the test plays."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from files import write_files
from real_runs import wait_until

from coral.cluster import slurm_bridge, slurm_job, wire

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a socket is reached through /proc")
pytest.importorskip("submitit")
MESSAGE = {"submit": "k", "seen": 0, "again": True, "order": {"attempt": 1}, "resources": {}, "began": {}}
BRIDGE = """
import sys
from coral.cluster import slurm_bridge
slurm_bridge.LEASE_EVERY = 0.05
slurm_bridge.main(*sys.argv[1:])
"""


def test_the_lease_is_renewed_while_a_client_takes_nothing(tmp_path: Path) -> None:
    place, lease = tmp_path / "tries" / "1", tmp_path / slurm_job.LEASE
    place.mkdir(parents=True)
    (place / "key").write_text("k")
    (place / "job").write_text(str(os.getpid()))
    (place / slurm_job.EVENTS).write_bytes(wire.encoded({"output": {"stdout": bytes(4 << 20)}}))
    line = [sys.executable, "-P", "-c", BRIDGE, str(tmp_path), "local"]
    with subprocess.Popen(line, stdin=subprocess.PIPE) as bridge:
        with wait_until(lambda: connected(tmp_path), what="the bridge") as client:
            client.sendall(wire.encoded(MESSAGE))
            client.recv(1, socket.MSG_PEEK)
            client.recv(1000)
            for _ in range(10):
                before = lease.stat().st_mtime_ns
                wait_until(lambda before=before: lease.stat().st_mtime_ns != before, what="the next renewal")
        bridge.communicate(b"end\n")


def test_a_command_that_does_not_answer_ends_no_bridge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tries" / "1").mkdir(parents=True)
    for name in ("key", "job"):
        (tmp_path / "tries" / "1" / name).write_text("7")
    script = f"#!/bin/sh\necho $* > {tmp_path}/$(basename $0)\nexec sleep 20\n"
    write_files(tmp_path / "bin", dict.fromkeys(("sbatch", "scancel"), script))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_bridge, "_ASK_SECONDS", 3.0)
    bridge = slurm_bridge.SlurmBridge(tmp_path, "slurm")
    assert bridge.keys() == ["7"]
    bridge.cancel("7")
    assert ((tmp_path / "scancel").read_text(), bridge.keys(), list((tmp_path / "tries").iterdir())) == ("7\n", [], [])


def connected(folder: Path) -> socket.socket | None:
    with contextlib.suppress(OSError):
        return wire.connect(folder, 5)
    return None
