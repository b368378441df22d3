"""Writes journals for tests: decides on events as the loop does, and performs nothing."""

from dataclasses import replace
from pathlib import Path

from stage import QUIET_RULES, SEED, Stage, attempt_zero, submitted

from coral.fleet import events as on
from coral.fleet.decide import decide
from coral.fleet.events import Ending, Moment
from coral.fleet.run_state import Fleet
from coral.journal import Decision, Journal
from coral.processes.process_tree import Identity
from heartbeats.heartbeat import BUILT_IN

RULES = replace(QUIET_RULES, stagger=0.05, heartbeats=BUILT_IN)
FOLDER = (3, 14)


def moment(clock: float) -> Moment:
    """Return the time of a decision in a run that began at midnight: second 90 is 00:01:30."""
    return Moment(run_time=clock, wall_time=f"2030-01-01T00:{int(clock) // 60:02d}:{int(clock) % 60:02d}.000Z")


class JournalRecorder:
    """`taken`: the decisions that are in the journal; `fleets`: the fleet after each of them."""

    def __init__(self, path: Path, **how: int) -> None:
        self.journal = Journal(path, **how)
        self.rules = RULES
        self.fleet = Fleet()
        self.taken: list[Decision] = []
        self.fleets: list[Fleet] = []

    def decide(self, clock: float, *events: on.Event) -> None:
        now = moment(clock)
        after, actions = decide(self.fleet, events, now, self.rules)
        self.journal.record(now, events, actions, self.fleet, after)
        self.taken.append(Decision(now=now, events=events, actions=actions, changes={}))
        self.fleet = after
        self.fleets.append(after)

    def play(self) -> None:
        """Write a short run in which every kind of record of the fleet is made, changed and dropped."""
        stage = Stage(2, self.rules)  # for its events alone
        self.journal.open_supervision(self.rules, moment(0), FOLDER)
        self.decide(0, on.Opened(run="run", agents=("ann", "ben"), baseline=attempt_zero()))
        self.journal.record_started({"ann": (1, Identity(7, 70, "boot"))})
        self.decide(1, stage.heard("ann"))
        stage.at(1, submission := stage.submission("ann"))
        self.decide(2, submission)
        self.decide(3, stage.taken(1))
        self.decide(4, on.Graded(number=1, launch=1, outcome=on.Outcome.SCORED, score=1.5, metrics={"n": 1}))
        self.decide(5, on.Published(number=1), on.Exited(agent="ann", launch=1, ending=Ending.INTERRUPTED))
        entry = {"name": "breathe", "every": 2, "prompt": "in ⟶ out"}
        self.decide(6, on.Requested(sender="ann", id="1", request=on.SetHeartbeat(owner="ann", entry=entry)))


class LongRecorder(JournalRecorder):
    """Writes journals of any length."""

    def go_on(self, rounds: int) -> None:
        """Let `ben` make so many attempts."""
        for _ in range(rounds):
            clock = self.taken[-1].now.run_time + 1
            agent = self.fleet.agents["ben"]
            number = self.fleet.run.next_number
            self.decide(clock, submitted("ben", number))
            self.decide(clock + 1, on.OutputSeen(agent="ben", launch=agent.launch, has_prompt=True, session="s"))
            self.decide(clock + 2, on.TakenIn(number=number, commit=SEED, tree=SEED, parent=""))
            self.decide(clock + 3, on.Graded(number=number, launch=1, outcome=on.Outcome.SCORED, score=float(number)))
            self.decide(
                clock + 4, on.Published(number=number), on.OutputSeen(agent="ben", launch=agent.launch, has_prompt=True)
            )
