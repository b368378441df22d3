"""Who waits at a gate: a launch goes on when it is written down who it is, and not before."""

from collections.abc import Iterator

from coral.fleet import events as on
from coral.journal import Journal
from coral.processes.launches import Launches
from coral.processes.process import Held, Program


class Starter:
    def __init__(self, launches: Launches, journal: Journal) -> None:
        self._launches = launches
        self._journal = journal
        self._held: dict[str, tuple[int, Held]] = {}

    def prepare(self, who: str, launch: int, program: Program, clock: float) -> None:
        """Start a program up to its gate. OSError where that is not possible."""
        self._held[who] = (launch, self._launches.hold(who, launch, program, clock))

    def cancel(self, who: str) -> None:
        """What failed on its way must not start after all."""
        if held := self._held.pop(who, None):
            held[1].abandon()
            self._launches.abandon(who)

    def commit(self) -> Iterator[on.SpawnFailed]:
        """Open the gates; where it cannot be written down who waits there, nobody starts."""
        if not self._held:
            return
        held, self._held = self._held, {}
        try:
            self._journal.record_started({who: (launch, each.identity) for who, (launch, each) in held.items()})
        except OSError as error:
            for who, (launch, each) in held.items():
                each.abandon()
                self._launches.abandon(who)
                yield on.SpawnFailed(who=who, launch=launch, reason=str(error))
            return
        for _, each in held.values():
            each.release()
