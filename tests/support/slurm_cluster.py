"""A real Slurm of one node on loopback, started from a folder of its own: controller, node, and munge between them."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
from real_runs import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel")
CONFIGURATION = """\
ClusterName=coral
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Return why no Slurm can be started here; empty if one can."""
    if os.geteuid() != 0:
        return "Slurm of our own needs root"
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    return f"there is no {missing[0]} (apt-get install slurm-wlm munge)" if missing else ""


class SlurmCluster:
    """`env`: the variable that leads to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        _have_an_address()
        for name in ("state", "spool"):
            (folder / name).mkdir()
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o400)
        self._path = folder / "slurm.conf"
        self._path.write_text(
            CONFIGURATION.format(folder=folder, host=socket.gethostname().split(".")[0], ports=_free_ports())
        )
        self.env = {"SLURM_CONF": str(self._path)}
        names = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munged.pid", "log-file": "munged.log"}
        own = [f"--{option}={folder / name}" for option, name in names.items()]
        self._run("munged", *own, f"--seed-file={folder / 'munged.seed'}", "--force")
        self._run("slurmctld", "-f", str(self._path))
        self._run("slurmd", "-f", str(self._path))
        try:
            wait_until(lambda: "idle" in self._run("sinfo", "--noheader", "--format=%t"), what="an idle node")
        except BaseException:
            self.close()
            raise

    def jobs(self) -> list[str]:
        return self._run("squeue", "--noheader", "--format=%A").split()

    @contextlib.contextmanager
    def without_controller(self) -> Iterator[None]:
        """End the controller, which saves its state, and start it again at the end of the context."""
        self._end("slurmctld")
        try:
            yield
        finally:
            self._run("slurmctld", "-f", str(self._path))

    def close(self) -> None:
        """End its three processes, each known by the file that it wrote."""
        for name in ("slurmd", "slurmctld", "munged"):
            if (self.folder / f"{name}.pid").exists():
                self._end(name)

    def _end(self, name: str) -> None:
        pid = int((self.folder / f"{name}.pid").read_text())
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not Path(f"/proc/{pid}").exists(), what=f"the end of {name}")

    def _run(self, *line: str) -> str:
        done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, **self.env}, check=False)
        return done.stdout if done.returncode == 0 else ""


def _have_an_address() -> None:
    """Add an address besides that of loopback, in a network of our own: without one Slurm does not begin."""
    if psutil.net_if_addrs().keys() <= {"lo"}:
        subprocess.run(("ip", "addr", "replace", "192.0.2.1/32", "dev", "lo"), check=True)


def _free_ports() -> list[int]:
    with socket.socket() as one, socket.socket() as other:
        for free in (one, other):
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in (one, other)]
