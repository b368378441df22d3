"""Real runs in hostile surroundings: agents that flood, and what they plant where the supervisor reads and writes."""

import json

from real_runs import tries, wait_until

from coral.supervisor.event_queue import AT_FIRST
from workspace.clone_overlay import SHARED

FLOOD = 10_000


def test_an_agent_that_floods_its_folders_delays_nobody(start):
    run = start([*tries(1, 2), "hang"], overrides=("agents.count=2",), supervise=False)
    inbox, requests = run.layout.attempts / "inbox" / "agent-1", run.layout.requests_of("agent-1")
    for number in range(FLOOD):
        (inbox / f"{number:020d}.json").write_text("{}")
        (requests / f"{number:020d}.json").write_text(json.dumps({"type": "nonsense"}))
    run.supervise()
    wait_until(lambda: run.received("agent-2", "reflect"), what="the heartbeat of the other agent")
    assert run.ask({"type": "tell", "to": "agent-2", "text": "are you there"})["ok"] is True
    # All that while the flood was not over.
    assert len(list(inbox.glob("*.json"))) > 100
    assert len(list(requests.glob("*.json"))) > 100
    assert len(run.events("alert")) <= AT_FIRST + 1


PIPES = """
if [ -e again ]; then echo here; exec sleep 300; fi
echo x; touch again
logs=$CORAL_RUN/logs/$CORAL_AGENT
coral eval --no-wait -m one
rm -f $logs/beats.jsonl .git/info/exclude .git/info/coral .git/config .git/index $CORAL_RUN/status.json *.md .shared
for each in $logs/beats.jsonl $logs/0002.jsonl $logs/0002.prompt.md .git/info/exclude .git/info/coral .git/config \\
    .git/index $CORAL_RUN/status.json; do mkfifo $each; done
echo precious > $CORAL_RUN/precious
ln -s $CORAL_RUN/precious $logs/0002.err
rm $logs/0001.jsonl; mkfifo $logs/0001.jsonl
exec sleep 300
"""


def test_pipes_and_links_where_the_supervisor_reads_and_writes_hold_nobody_up(start):
    run = start(PIPES, overrides=("run.poll_seconds=0.2", "agents.stall=20", "grader.slots=2"))
    output = run.layout.output("agent-1", 2)
    wait_until(lambda: output.is_file() and "here" in output.read_text(), what="the next launch")
    assert run.ask({"type": "tell", "to": "agent-1", "text": "are you there"})["ok"] is True
    assert "reflect" in run.layout.prompt("agent-1", 2).read_text()
    clone = run.layout.clone("agent-1")
    assert (clone / SHARED).is_symlink()
    assert list(clone.glob("*.md"))
    assert (run.layout.root / "precious").read_text() == "precious\n"
    assert [attempt.number for attempt in run.attempts()] == [1]
    wait_until(run.layout.status.is_file, what="a status that is a file again")
