"""A simulated machine on which a run lives for days: a real journal, pids that are given away again, reboots, copies.

A supervisor knows of a process what its journal says of it. Whatever has the same pid with another start, in another
boot, or belongs to the folder that this one was copied from, is not its own - and is never signalled or waited for.
"""

from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from random import Random

from moves import HEARTBEATS, STALLS, make
from stage import QUIET_RULES
from world import NAMES, OBEDIENT, Process, World

from coral.fleet import actions as do, events as on
from coral.fleet.events import Ending
from coral.fleet.rules import Rules
from coral.fleet.run_state import Fleet
from coral.journal import Journal, RecoveredState
from coral.journal.writer import QUIET_SECONDS
from coral.processes.process_tree import Identity

LONG = 100_000  # bytes of a file of the journal
STRANGERS = 5  # processes that have the pids and start times after a reboot that ours had before
# Kinds of moves, as often as each is to be drawn; and what happens to the machine.
WORK = ["try"] * 6 + ["submit"] * 6 + ["grade"] * 5 + ["print"] * 5 + ["ack", "look", "look"]
TROUBLE = ["end", "mute", "deaf", "clean", "deafgrade", "ask", "kill", "kill", "killgrader", "killgrader"]
DEATH = ["die"] * 8 + ["resume"] * 6 + ["again", "reboot", "copy"]


RULES = Rules(
    seed_commit=QUIET_RULES.seed_commit,
    slots=2,
    heartbeats=HEARTBEATS,
    accounts=dict.fromkeys(NAMES[1:], "acme"),
    no_progress=7200.0,
    outage=900.0,
    retries=30,
    fresh_compactions=3,
)


class SimulatedMachine(World):
    def __init__(self, rules: Rules, folder: Path) -> None:
        self.folder = folder / "1"
        self.copies = self.boots = self.deaths = 1
        self.journal = Journal(self.folder, LONG)
        self.machine: dict[int, tuple[int, Process]] = {}
        self.ticks = count(1)
        self.pids = count(1)
        self.known: dict[str, tuple[int, Identity]] = {}
        self.refused: list[str] = []
        self.adopted = 0
        self.journal.open_supervision(rules, on.Moment(run_time=0.0, wall_time=""), self.inode)
        super().__init__(rules)

    @property
    def inode(self) -> tuple[int, int]:
        """What tells the run's folder from its copies."""
        return 1, self.copies

    # The supervisor.

    def die(self, performed: int) -> None:
        if self.alive:
            super().die(performed)
            self.journal.close()
            self.deaths += 1

    def wait(self, seconds: float) -> None:
        """Let so many seconds pass; the supervisor wakes up at least every minute."""
        end = self.clock + seconds
        while self.alive and not self.finished and end - self.clock > 0.001:
            super().wait(min(QUIET_SECONDS, end - self.clock))
            self.journal.record_time(on.Moment(run_time=self.clock, wall_time=""))

    def reboot(self, performed: int) -> None:
        """Let the supervisor die in its next decision, and all processes with it; pids and start times begin again."""
        self.die(performed)
        self.boots += 1
        self.processes = {}
        self.ticks, self.pids = count(1), count(1)
        self.machine = {next(self.pids): (next(self.ticks), Process("a stranger", 0)) for _ in range(STRANGERS)}

    def copy(self, performed: int) -> None:
        """Let the supervisor die in its next decision, and go on with a copy of the run; running processes belong to
        the original."""
        self.die(performed)
        self.copies += 1
        self.processes = {}
        self.folder = self.folder.rename(self.folder.with_name(f"{self.copies}"))

    # The journal.

    def write(self, now: on.Moment, events: list[on.Event], actions: tuple[do.Action, ...], after: Fleet) -> None:
        self.journal.record(now, events, actions, self.fleet, after)

    def tear(self, now: on.Moment, events: list[on.Event], actions: tuple[do.Action, ...], after: Fleet) -> None:
        self.write(now, events, actions, after)
        newest = max(self.folder.glob("*.jsonl"))
        text = newest.read_bytes()
        line = len(text) - text.rindex(b"\n", 0, -1) - 1
        newest.write_bytes(text[: len(text) - line // 2])

    def recall(self) -> RecoveredState:
        stood = self.clock
        if self.alive:  # it came to its end
            self.journal.close()
        self.journal = Journal(self.folder, LONG)
        memory = self.journal.recovered
        assert stood - QUIET_SECONDS <= memory.clock <= stood
        self.known = memory.identities if memory.folder == self.inode else {}
        self.journal.open_supervision(self.rules, on.Moment(run_time=memory.clock, wall_time=""), self.inode)
        return memory

    # Processes.

    def open_gates(self, actions: Iterable[do.Action]) -> None:
        before = dict(self.processes)
        super().open_gates(actions)
        started = {who: process for who, process in self.processes.items() if before.get(who) is not process}
        if started:
            identities = {who: (process.launch, self._born(process)) for who, process in started.items()}
            self.journal.record_started(identities)
            self.known |= identities
        if self.dying is not None:
            # It died before it opened the gates, and behind them nobody waits for long.
            self.processes = before
            for process in started.values():
                process.ending = Ending.CRASHED

    def _born(self, process: Process) -> Identity:
        """Give a process the next free pid, of only a few: each is soon given to another process."""
        taken = {pid for pid, (_, process) in self.machine.items() if not process.is_gone}
        pid = next(pid for number in self.pids if (pid := number % 50 + 1) not in taken)
        self.machine[pid] = (next(self.ticks), process)
        return Identity(pid, self.machine[pid][0], f"boot {self.boots}")

    def _living(self, who: str, launch: int) -> Process | None:
        """Return the process that the supervisor knows as this launch, if it is still there."""
        number, identity = self.known.get(who, (0, None))
        if identity is None or number != launch or identity.boot != f"boot {self.boots}":
            return None
        started, process = self.machine.get(identity.pid, (0, None))
        return process if process is not None and started == identity.started and not process.is_gone else None

    def is_alive(self, who: str, launch: int) -> bool:
        found, there = self._living(who, launch), self.processes.get(who)
        assert found is there if found else there is None or there.is_gone, f"{who} is taken for {found}"
        self.adopted += found is not None
        return found is not None

    def signal(self, who: str, launch: int, strength: int) -> None:
        if found := self._living(who, launch):
            assert self.processes.get(who) is found, "a signal meets somebody else"
            super().signal(who, launch, strength)

    def _perform(self, action: do.Action) -> None:
        super()._perform(action)
        if isinstance(action, do.Refuse):
            self.refused.append(action.submission)


def live(world: SimulatedMachine, chance: Random, seconds: float, more: Sequence[str] = ()) -> None:
    """Let so many seconds of the run pass, in which anything may happen, a little at a time. `more`: further kinds of
    moves."""
    kinds = [*WORK * 4, *TROUBLE * 2, *DEATH, *STALLS, *more]
    while world.clock < seconds:
        for _ in range(chance.randint(1, 8)):
            befall(world, chance.choice(kinds), chance.randrange(100), chance.randrange(100))
        if world.finished:
            world.reboot(0)  # the last agent has retired, with a process that nothing else ends
        world.resume()
        world.wait(chance.expovariate(1 / 900))


def befall(world: SimulatedMachine, kind: str, x: int, y: int) -> None:
    match kind:
        case "die":
            world.die(x % 12 - 1)
        case "reboot":
            world.reboot(x % 12 - 1)
        case "copy":
            world.copy(x % 12 - 1)
        case "kill":
            _kill(world.processes.get(NAMES[x % len(NAMES)]))
        case "killgrader":
            graders = [process for who, process in world.processes.items() if who.startswith("#")]
            _kill(graders[x % len(graders)] if graders else None)
        case _:
            make(world, (kind, x, y))


def _kill(process: Process | None) -> None:
    """Kill a process from outside; what it started may live on."""
    if process is not None and process.ending is None and process.deaf == OBEDIENT:
        process.ending = Ending.CRASHED
