"""The launches that are alive: started here, or taken over from the supervisor before.

A launch is over when its process and everything it started are gone; only then is it forgotten.
"""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from coral.fleet.process_key import grade_in
from coral.processes import cgroup, process
from coral.processes.process import HeldChild, Program
from coral.processes.process_table import Identity, ProcessTable, is_alive
from coral.processes.wakeup import Wakeup

LINGERING_SECONDS = 0.05  # when to look whether leftovers are gone; then twice as long, and so on
LONGEST_PAUSE = 5.0


class LaunchState(StrEnum):
    LINGERS = "lingers"
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
    code: int | None = None
    ended: bool = False
    pause: float = LINGERING_SECONDS
    look_at: float = 0.0


class Launches:
    def __init__(self, run: str, wakeup: Wakeup) -> None:
        self._run = run
        self._wakeup = wakeup
        self._live: dict[str, Launch] = {}
        self._suspects: set[str] = set()
        self._table = ProcessTable()
        self._groups = cgroup.Groups(run)

    def close(self) -> None:
        """Leave no group behind but those in which somebody lives on."""
        self._groups.remove_empty()

    def tag(self, who: str, number: int) -> str:
        return f"{self._run}/{who}/{number}"

    def hold(self, who: str, number: int, program: Program, now: float) -> HeldChild:
        """Start a program up to its gate. OSError where that fails; then there is no launch."""
        # A grade is waited for, and the kernel takes some ten milliseconds to let somebody into a group: there the mark
        # has to do.
        group = self._groups.make(f"{who}.{number}") if grade_in(who) is None else ""
        try:
            held = process.start(replace(program, group=group))
        except BaseException:
            cgroup.remove(group)
            raise
        launch = Launch(who, number, held.identity, program.tag, now, child=held.child)
        self._live[who] = launch
        self._wakeup.watch(who, held.identity.pid)
        return held

    def adopt(self, who: str, number: int, identity: Identity, now: float) -> bool:
        """Take over a launch of the supervisor before; False if nothing of it is left."""
        launch = Launch(who, number, identity, self.tag(who, number), now)
        alive = is_alive(identity)
        if not alive:
            if not self._table.scanned:
                self._table.scan()  # once for all who ended: nothing of a launch comes back
            if not self._table.members(identity, launch.tag):
                cgroup.remove(identity.group)
                return False
        self._live[who] = launch
        if alive:
            self._wakeup.watch(who, identity.pid)
        self._suspects.add(who)
        return True

    def abandon(self, who: str) -> None:
        self._wakeup.forget(who)
        launch = self._live.pop(who, None)
        if launch is not None:
            cgroup.remove(launch.identity.group)

    def find(self, who: str, number: int) -> Launch | None:
        launch = self._live.get(who)
        return launch if launch is not None and launch.number == number else None

    def suspect(self, ended: set[str]) -> None:
        """These may be over: look at them next time."""
        self._suspects |= ended

    def suspect_all(self) -> None:
        self._suspects |= self._live.keys()

    @property
    def next_check(self) -> float | None:
        """Seconds until leftovers should be looked at again; None while there are none."""
        looks = [launch.look_at for launch in self._live.values() if launch.ended]
        return max(min(looks) - time.monotonic(), 0.0) if looks else None

    def ended(self) -> Iterator[tuple[Launch, LaunchState]]:
        """The launches whose own process has ended, and whether anything it started is left."""
        now = time.monotonic()
        looking = self._suspects | {
            launch.who for launch in self._live.values() if launch.ended and now >= launch.look_at
        }
        self._suspects = set()
        found = (self._live.get(who) for who in looking)
        ended = [launch for launch in found if launch is not None and self._has_ended(launch)]
        if ended:
            self._table.scan()
        for launch in ended:
            if self._table.members(launch.identity, launch.tag):
                # A look costs a walk through all processes: an unkillable one must not make the loop spin.
                launch.look_at, launch.pause = now + launch.pause, min(2 * launch.pause, LONGEST_PAUSE)
                yield launch, LaunchState.LINGERS
            else:
                self.abandon(launch.who)
                yield launch, LaunchState.GONE

    def _has_ended(self, launch: Launch) -> bool:
        if not launch.ended:
            if launch.child is not None:
                launch.code = launch.child.poll()
                launch.ended = launch.code is not None
            else:
                launch.ended = not is_alive(launch.identity)
            if not launch.ended and launch.child is None and not self._wakeup.watches(launch.who):
                self._wakeup.watch(launch.who, launch.identity.pid)
        return launch.ended
