"""Real programs that read first: what they hand in meanwhile is refused, and they begin in the same conversation."""

from pathlib import Path

import pytest
import whole_runs
from driven import Drive
from model_server import Asked, Step
from records import readable

from attempts.store import Store

pytestmark = pytest.mark.timeout(900)

READ = "I have read what there is."
REFUSED = "you read and think first, for"


def reader(asked: Asked) -> Step:
    """It is too hasty, hears so, ends its turn, and does as it is told from then on."""
    if asked.has("Your research is over"):
        return Step(say="Then I begin.", run="echo 7 > x.txt && coral eval -m begun")
    if asked.has(REFUSED):
        return Step(say=READ)
    return Step(say="I try at once.", run="echo 5 > x.txt && coral eval -m hasty")


@pytest.mark.parametrize("program", ["claude", "codex"], indirect=True)
def test_it_reads_and_then_it_begins(program: str, drive: Drive, tmp_path: Path) -> None:
    server, desk = drive(program, reader)
    chosen = {"model": desk.model} if desk.model else {}
    agents = {"runtime": program, "research": 60, **chosen}
    layout = whole_runs.start(whole_runs.write_task(tmp_path / "task", agents, {"attempts": 1}), tmp_path)
    (attempt,) = (record for record in readable(Store(layout.attempts)) if record.number)
    assert (attempt.title, attempt.score) == ("begun", 7.0)
    begun = next(turn for turn in server.turns if turn.has("Your research is over"))
    assert begun.has("**Research first.** For 1 h you read and think", REFUSED, READ, "## Heartbeat: begin")
