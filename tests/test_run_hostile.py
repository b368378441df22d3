"""Real runs in hostile surroundings: agents that flood, and what they plant where the supervisor reads and writes."""

import json

import pytest
from real_runs import tries, wait_until

from coral.complaints import AT_FIRST

pytestmark = pytest.mark.slow

FLOOD = 10_000


def test_an_agent_that_floods_its_folders_delays_nobody(start):
    run = start([*tries(1, 2), "hang"], overrides=("agents.count=2",), supervise=False)
    inbox, requests = run.layout.attempts / "inbox" / "agent-1", run.layout.requests_of("agent-1")
    for number in range(FLOOD):
        (inbox / f"{number:020d}.json").write_text("{}")
        (requests / f"{number:020d}.json").write_text(json.dumps({"type": "nonsense"}))
    run.supervise()
    wait_until(lambda: run.received("agent-2", "reflect"), 60, "the heartbeat of the other agent")
    assert run.ask({"type": "tell", "to": "agent-2", "text": "are you there"})["ok"] is True
    # All that while most of the flood was still there.
    assert len(list(inbox.iterdir())) > FLOOD / 2
    assert len(list(requests.glob("*.json"))) > FLOOD / 2
    assert len(run.events("alert")) <= AT_FIRST + 1
    run.stop()
    assert run.left() == []
