"""The bridge of a run's agents with hosts in its own process: all of a launch on a node but the cluster itself."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from coral.cluster.bridge import wait_for_lock
from coral.cluster.host import Host
from coral.cluster.launch_bridge import LaunchBridge, LaunchClient, LostError
from coral.processes import environment

LEASE = 60.0


class LocalLaunchBridge(LaunchBridge):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._hosts: dict[str, Host] = {}

    def host(self, client: LaunchClient) -> Host:
        asked = client.asked
        if asked["launch"] not in self._hosts:
            if asked["began"]:
                raise LostError("the process that ran it there ended")
            self._hosts[asked["launch"]] = Host(asked, LEASE)
        return self._hosts[asked["launch"]]

    def call(self, client: LaunchClient, method: str, *arguments: Any) -> Any:
        return getattr(client.host, method)(*arguments)

    def described(self, places: list[dict[str, Any]], *, by_nodes: bool) -> dict[str, Any]:
        raise NotImplementedError

    def end(self, launch: str) -> None:
        if (host := self._hosts.pop(launch, None)) is not None:
            host.close()

    def launches(self) -> list[str]:
        return list(self._hosts)


class Keeper:
    """As `coral.cluster.keeper.BridgeKeeper`. `temporary`: the folder in which the node has its mirrors."""

    def __init__(self, folder: Path, temporary: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        line = [sys.executable, "-P", "-c", _CALL, str(Path(__file__).parent), str(folder), str(temporary)]
        self._log = folder / "local.log"
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                line, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment.base(), start_new_session=True
            )

    def close(self) -> None:
        self._child.communicate(b"end\n", timeout=120)
        assert self._log.read_bytes() == b"", self._log.read_text()


_CALL = "import sys; sys.path.append(sys.argv[1]); from local_launch_bridge import main; main(*sys.argv[2:])"


def main(folder: str, temporary: str) -> None:
    os.environ["TMPDIR"] = tempfile.tempdir = temporary
    if wait_for_lock(Path(folder)):
        LocalLaunchBridge(Path(folder)).serve()
