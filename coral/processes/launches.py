"""The launches that are alive: started by this supervisor, or taken over from the one before.

A launch has ended when its own process has; it is forgotten only when everything it started is gone as well.
"""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from coral.processes import cgroup, namespaces, process
from coral.processes.launch_tags import LaunchTags
from coral.processes.prestarted import PrestartedInterpreter
from coral.processes.process import HeldChild, Program
from coral.processes.process_tree import Identity, ProcessTable, is_alive
from coral.processes.result_channel import ResultChannel
from coral.processes.wakeup import Wakeup

LINGERING_SECONDS = 0.05  # until the first check whether leftovers are gone; each further pause is twice as long
LONGEST_PAUSE = 5.0


class LaunchState(StrEnum):
    LEFT_PROCESSES = "left processes"
    GONE = "gone"


@dataclass(slots=True)
class Launch:
    """`code`: as Popen gives it, negative for a signal; None while it runs, or if nobody could see it."""

    who: str
    number: int
    identity: Identity
    tag: str
    started: float
    child: "subprocess.Popen[bytes] | None" = None
    channel: ResultChannel | None = None
    code: int | None = None
    ended: bool = False
    killed: bool = False  # we sent SIGKILL before its own process had ended
    pause: float = LINGERING_SECONDS
    check_at: float = 0.0


class Launches:
    def __init__(self, tags: LaunchTags, wakeup: Wakeup) -> None:
        self._tags = tags
        self._wakeup = wakeup
        self._live: dict[str, Launch] = {}
        self._suspects: set[str] = set()
        self._table = ProcessTable()
        self._groups = cgroup.Groups(tags.run)

    def close(self) -> None:
        """Leave no control group behind but those with a living process."""
        self._groups.remove_empty()

    def tag(self, who: str, number: int) -> str:
        return self._tags.of(who, number)

    def make_group(self, who: str, number: int) -> str:
        """A control group for a launch; empty where none may be made."""
        return self._groups.make(f"{who}.{number}")

    def terminate(self, launch: Launch) -> None:
        """SIGTERM for every process of the launch."""
        process.terminate(launch.identity, launch.tag, self._table)

    def kill(self, launch: Launch) -> None:
        """Send SIGKILL to every process of the launch, also to those that start meanwhile."""
        launch.killed = launch.killed or not launch.ended
        process.kill(launch.identity, launch.tag, self._table)

    def hold(
        self, who: str, number: int, program: Program, now: float, interpreter: PrestartedInterpreter | None = None
    ) -> HeldChild:
        """Start a child that waits for its release, or take the interpreter that was started for it. OSError where that
        fails; then there is no launch."""
        group = self.make_group(who, number) if interpreter is None else interpreter.group
        try:
            start = process.start if interpreter is None else interpreter.hold
            held = start(replace(program, group=group))
        except BaseException:
            cgroup.remove(group)
            raise
        self._live[who] = Launch(who, number, held.identity, program.tag, now, child=held.child, channel=held.channel)
        self._table.add_launch(who, held.identity, program.tag)
        self._wakeup.watch(who, held.identity.pid)
        return held

    def adopt(self, who: str, number: int, identity: Identity, now: float) -> bool:
        """Take over a launch of the supervisor before; False if no process of it is left."""
        launch = Launch(who, number, identity, self.tag(who, number), now)
        self._table.add_launch(who, identity, launch.tag)
        if is_alive(identity):
            self._wakeup.watch(who, identity.pid)
        else:
            if not self._table.scanned:
                self._table.scan()  # one scan for all launches: a launch that has ended starts nothing more
            if not self._table.members(identity, launch.tag):
                cgroup.remove(identity.group)
                self._table.remove_launch(who)
                return False
        self._live[who] = launch
        self._suspects.add(who)
        return True

    def abandon(self, who: str) -> None:
        self._wakeup.forget(who)
        launch = self._live.pop(who, None)
        self._table.remove_launch(who)
        if launch is not None:
            cgroup.remove(launch.identity.group)

    def find(self, who: str, number: int) -> Launch | None:
        launch = self._live.get(who)
        return launch if launch is not None and launch.number == number else None

    def suspect(self, ended: set[str]) -> None:
        """Let the next call of `ended` check these launches."""
        self._suspects |= ended

    def suspect_all(self) -> None:
        self._suspects |= self._live.keys()

    @property
    def seconds_to_check(self) -> float | None:
        """The seconds until leftovers should be checked again; None while there are none."""
        checks = [launch.check_at for launch in self._live.values() if launch.ended]
        return max(min(checks) - time.monotonic(), 0.0) if checks else None

    def ended(self) -> Iterator[tuple[Launch, LaunchState]]:
        """Yield the launches whose own process has ended, and whether anything it started is left."""
        now = time.monotonic()
        due = {launch.who for launch in self._live.values() if launch.ended and now >= launch.check_at}
        candidates = [self._live.get(who) for who in self._suspects | due]
        self._suspects = set()
        ended = [launch for launch in candidates if launch is not None and self._has_ended(launch)]
        if ended:
            self._table.scan()
        for launch in ended:
            if left := self._table.members(launch.identity, launch.tag):
                # What is about to end is seen at once. Only the first time: others may follow without end.
                if launch.pause == LINGERING_SECONDS:
                    self._wakeup.watch(launch.who, left[0].pid)
                else:
                    self._wakeup.forget(launch.who)
                # A scan reads all processes: an unkillable one must not make the loop spin.
                launch.check_at, launch.pause = now + launch.pause, min(2 * launch.pause, LONGEST_PAUSE)
                yield launch, LaunchState.LEFT_PROCESSES
            else:
                self.abandon(launch.who)
                yield launch, LaunchState.GONE

    def _has_ended(self, launch: Launch) -> bool:
        if launch.ended:
            return True
        if launch.child is not None:
            launch.code = launch.child.poll()
            launch.ended = launch.code is not None
            if launch.code is not None and launch.identity.sealed:
                launch.code = namespaces.code_of_program(launch.code)
        else:
            launch.ended = not is_alive(launch.identity)
            if not launch.ended and not self._wakeup.watches(launch.who):
                self._wakeup.watch(launch.who, launch.identity.pid)
        return launch.ended
