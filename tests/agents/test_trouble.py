"""Trouble at one provider stays with its account: agents of another get every heartbeat, and wait for nobody."""

from pathlib import Path

import pytest
import whole_runs
from driven import Mixed
from model_server import Asked, Step
from records import readable
from whole_runs import delivered, trying

from attempts.store import Store
from coral.journal import fold

pytestmark = pytest.mark.timeout(900)

WELL, ATTEMPTS = "claude", 4
TROUBLES = {
    "errors of the server": Step(error="broken"),
    "a limit in words that nobody knows": Step(error="too many", body={"error": {"message": "Hold your horses."}}),
    "broken answers": Step(say="I begin to", cut=True),
    "empty answers": Step(say=""),
}
CASES = [("codex", trouble) for trouble in TROUBLES] + [("pi", "errors of the server")]


@pytest.mark.parametrize(("ill", "trouble"), CASES)
def test_the_trouble_of_one_account_holds_no_other(ill: str, trouble: str, mixed: Mixed, tmp_path: Path) -> None:
    work = trying()

    def answer(asked: Asked) -> Step:
        return work(asked) if asked.path.startswith("/v1/messages") else TROUBLES[trouble]

    _, parts = mixed((WELL, ill), answer)
    task = whole_runs.write_task(tmp_path / "task", {"assignments": parts}, {"attempts": ATTEMPTS})
    # One crash is enough to pause an account for longer than the test waits.
    layout = whole_runs.start(task, tmp_path, "run.breaker_crashes=1", "run.breaker_pause=100000")
    found = [attempt for attempt in readable(Store(layout.attempts)) if attempt.number > 0]
    assert [attempt.agent for attempt in found] == ["agent-1"] * ATTEMPTS
    assert len(delivered(layout, "agent-1")) == ATTEMPTS - 1
    fleet = fold(layout.journal).fleet
    assert WELL not in fleet.run.breakers
    assert fleet.agents["agent-2"].launch >= 1
