"""A native agent in this process, without a supervisor: its folders, records and memory, and a brain for a test."""

import json
from collections.abc import Callable
from pathlib import Path

from sample import attempt

from attempts.record import Attempt, Direction, Kind, Verdict
from attempts.store import Store
from coral.native.loop import Loop, TurnEnd
from coral.native.memory import AgentMemory
from coral.native.options import Options
from coral.native.output import Output
from coral.native.prompt import heartbeat_sections
from coral.native.run_view import AgentRunView
from coral.native.search.explore import Explorer
from coral.native.situation import Call, Event, Situation
from coral.native.snapshots import Snapshots
from coral.native.workbench import SearchBench
from workspace.knowledge import create
from workspace.layout import Layout

Policy = Callable[[Situation, Event], tuple[Call, ...]]


def publish_submissions(layout: Layout) -> None:
    """Publish a score for every submission, as a supervisor would; each a little better than the last."""
    store = Store(layout.attempts)
    for name, submission_id, path in store.inbox():
        submission, number = store.read_submission(name, path), store.numbers()[-1] + 1
        store.publish(
            Attempt(
                number=number,
                agent=name,
                kind=Kind.REAL,
                commit=submission.commit,
                tree=submission.tree,
                parent="",
                title=submission.title,
                submission=submission_id,
                submitted_at=submission.submitted_at,
                published_at=submission.submitted_at,
                order=number,
                verdict=Verdict.OWN_BEST,
                score=100.0 - number,
            )
        )
        store.reply(name, submission_id, {"attempt": number, "published": True, "heartbeats": [], "inline": []})
        store.clear(name, submission_id)


class GivenBrain:
    """A brain that does as the test says, and remembers what it was asked."""

    searches = True

    def __init__(self, policy: Policy) -> None:
        self.policy, self.events = policy, list[Event]()

    def reason(self, situation: Situation, event: Event) -> tuple[Call, ...]:
        self.events.append(event)
        return self.policy(situation, event)


class LocalAgent:
    """A run with a seed that scores 1, and the clone of `agent-1`, whose one file holds one number."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.clone = self.layout.clone("agent-1")
        self.clone.mkdir(parents=True)
        (self.clone / "p.json").write_text('{"x": 1.5}')
        create(self.layout.shared)
        (self.clone / ".shared").symlink_to(self.layout.shared)
        self.layout.attempts.mkdir(parents=True)
        self.shared, self.state = self.layout.shared, root / "state"
        self.store = Store(self.layout.attempts)
        self.store.publish(attempt(0, 1.0))
        self.snapshots = Snapshots.create(self.state, "s-1", AgentMemory)
        self.file = (root / "out.jsonl").open("w+b")
        self.output = Output(self.file.fileno())
        view = self.run_view()
        explorer = Explorer(self.snapshots, self.output, view, Options(), ["p.json"], "", 0)
        self.bench = SearchBench(self.snapshots, self.output, view, explorer)

    def run_view(self) -> AgentRunView:
        return AgentRunView(self.layout.root, "agent-1", self.clone, self.state, Direction.MAXIMIZE)

    def run(self, policy: Policy, prompt: str = "", steps: int = 30) -> tuple[TurnEnd, list[Event]]:
        """Run the loop; returns why it ended, and the events that the brain was asked about."""
        brain = GivenBrain(policy)
        self.snapshots.memory = self.snapshots.memory.receive(heartbeat_sections(prompt))
        return Loop(self.bench, brain, steps).run(), brain.events

    def printed(self, kind: str) -> list[dict[str, object]]:
        self.file.seek(0)
        return [line for line in map(json.loads, self.file.read().splitlines()) if line["type"] == kind]
