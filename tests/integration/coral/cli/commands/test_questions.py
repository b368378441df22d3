"""`coral ask`, `coral answer` and `coral alert`: an agent asks, goes on, and hears the answer in its conversation."""

import json
from collections.abc import Callable

from real_runs import Run, coral_process, wait_until

ASKS = """
if [ ! -e asked ]; then touch asked; coral ask "may I use 8 GB?" >ask.txt; coral alert "the data is odd"; fi
cat >>heard.txt
sleep 600
"""


def test_a_question_stands_in_status_until_its_agent_gets_the_answer(start: Callable[..., Run]) -> None:
    run = start(ASKS, overrides=("agents.count=2", "run.max_defer=0.1"))
    where = ("--run", str(run.layout.root))

    def status() -> dict[str, object]:
        found: dict[str, object] = json.loads(coral_process("status", "--json", *where).stdout)
        return found

    questions = wait_until(lambda: len(found := status().get("questions") or []) == 2 and found, what="both questions")
    assert {question["text"] for question in questions} == {"may I use 8 GB?"}
    first = next(question for question in questions if question["agent"] == "agent-1")
    text = coral_process("status", *where).stdout
    assert f"question {first['number']} agent-1: may I use 8 GB?" in text
    alerts = wait_until(lambda: len(found := run.events("alert")) == 4 and found, what="the alerts of both")
    assert {"the data is odd", f"asks (question {first['number']}): may I use 8 GB?"} <= {one["text"] for one in alerts}
    clone = run.layout.clone("agent-1")
    assert "go on meanwhile" in (clone / "ask.txt").read_text()
    done = coral_process("answer", str(first["number"]), "yes, at night", *where)
    assert done.stdout.strip() == "agent-1 gets the answer when a turn or an eval ends"
    wait_until(lambda: "The answer: yes, at night" in (clone / "heard.txt").read_text(), what="the answer")
    assert "yes, at night" not in (run.layout.clone("agent-2") / "heard.txt").read_text()
    wait_until(lambda: len(status()["questions"]) == 1, what="a closed question")
    again = coral_process("answer", str(first["number"]), "no", *where)
    assert (again.returncode, "it is not open" in again.stderr) == (1, True)
    run.stop()
    assert coral_process("replay", *where).returncode == 0


def test_an_operator_alerts_and_does_not_ask(start: Callable[..., Run]) -> None:
    run = start(["hang"])
    where = ("--run", str(run.layout.root))
    assert coral_process("alert", "the power goes at noon", *where).returncode == 0
    (event,) = wait_until(lambda: run.events("alert"), what="the alert in the timeline, which follows its answer")
    assert event["text"] == "the power goes at noon"
    assert coral_process("alert", " ", *where).returncode == 1
    asked = coral_process("ask", "who am I?", cwd=run.layout.root)
    assert (asked.returncode, "is not an agent's workspace" in asked.stderr) == (1, True)
