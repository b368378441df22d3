"""Processes of grades on a cluster that are killed, one after the other, while a run goes on."""

import contextlib
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Collection
from random import Random

from ray_cluster import RayCluster, attempt_of
from real_runs import Run
from remote_grades import bridges

SOON = 5.0  # seconds that a process to be killed may take to be there
PAUSE = 1.0  # seconds between two deaths, on average


class Deaths:
    """`count`: how often each was killed; `graders`: the attempts whose grader was killed, on a node that lived on;
    `adopted`: those whose grade a later supervisor may have taken over."""

    def __init__(self, run: Run, cluster: RayCluster, chance: Random) -> None:
        self._run, self._cluster, self._chance = run, cluster, chance
        self.count: Counter[str] = Counter()
        self.graders: set[int] = set()
        self.adopted: set[int] = set()
        self._kinds: dict[str, Callable[[], bool]] = {
            "worker": lambda: self._kill(cluster.workers()),
            "guard": lambda: self._kill(cluster.guards()),
            "grader": self._kill_grader,
            "bridge": lambda: self._kill(bridges(run)),
            "owner": lambda: self._kill(cluster.owners()),
            "supervisor": self._kill_supervisor,
            "node": self._kill_node,
        }

    def follow(self, is_over: Callable[[], bool], seconds: float) -> None:
        """Kill one after the other, each kind in its turn, until it is over."""
        until, turn = time.monotonic() + seconds, list[str]()
        while not is_over():
            assert time.monotonic() < until, f"it is not over within {seconds:g} s, after {dict(self.count)}"
            turn = turn or self._chance.sample(sorted(self._kinds), len(self._kinds))
            kind, soon = turn.pop(), time.monotonic() + SOON
            while not (is_killed := self._kinds[kind]()) and not is_over() and time.monotonic() < soon:
                time.sleep(0.02)
            self.count[kind] += is_killed
            time.sleep(self._chance.expovariate(1 / PAUSE))

    def _kill(self, pids: Collection[int]) -> bool:
        if not pids:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._chance.choice(sorted(pids)), signal.SIGKILL)
            return True
        return False

    def _kill_grader(self) -> bool:
        graders = {pid: number for pid in self._cluster.graded() if (number := attempt_of(pid)) is not None}
        if not graders:
            return False
        pid = self._chance.choice(sorted(graders))
        self.graders.add(graders[pid])
        return self._kill([pid])

    def _kill_supervisor(self) -> bool:
        self._run.kill()
        self.adopted |= set(self._run.fleet().pending)
        self._run.supervise()
        return True

    def _kill_node(self) -> bool:
        nodes = self._cluster.nodes()
        if not nodes:
            return False
        self._cluster.kill_node(self._chance.choice(nodes))
        self._cluster.add_node()
        return True
