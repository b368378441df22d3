"""`coral alerts` and `coral notify`: what needs a person arrives where the person is, through any death."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from real_runs import Run, coral_process, wait_until, write_task
from webhook import webhook


def asked(run: Run, *words: str, code: int = 0) -> str:
    done = coral_process(*words, "--run", str(run.layout.root))
    assert done.returncode == code, (done.stdout, done.stderr)
    return done.stdout


def test_each_alert_arrives_at_least_once_whenever_the_supervisor_is_killed(start: Callable[..., Run]) -> None:
    chance = random.Random(1)
    with webhook() as hook:
        run = start(["hang"] * 50, overrides=(f"alerts.to=[{hook.url}]", "alerts.digest=0.1"))
        for number in range(12):
            run.request({"type": "alert", "text": f"alert {number}"})
            if number % 3 == 2:
                hook.status = chance.choice((200, 503))
                few = chance.randint(0, number)
                wait_until(lambda few=few: len(run.events("alert")) > few, what="some of them")
                run.kill()
                run.supervise()
        hook.status = 200
        wait_until(lambda: len(run.events("alert")) == 12, what="all alerts")
        run.stop()
        written = [event["id"] for event in run.events("alert")]
        assert len(set(written)) == len(written) == 12
        assert set(written) <= set(hook.ids)
        assert any("stopped" in id for id in hook.ids), "the end of the run is told too"


def test_alerts_are_listed_with_who_is_told_and_acknowledged(start: Callable[..., Run]) -> None:
    with webhook() as hook:
        hook.status = 500
        run = start(["hang"], overrides=(f"alerts.to=[{hook.url}, env:NO_FILE]",))
        run.ask({"type": "alert", "text": "the disk is nearly full"})
        run.ask({"type": "alert", "text": "and now it is"})
        wait_until(lambda: len(run.events("alert")) == 2, what="both")
        wait_until(lambda: "it answered 500" in asked(run, "alerts"), what="what came of it")
        text = asked(run, "alerts")
        assert "the disk is nearly full" in text
        assert "the environment variable NO_FILE is not set" in text
        assert "secret" not in text
        wait_until(lambda: "and now it is" in asked(run, "status"), what="a status with it")
        assert asked(run, "alerts", "ack", "1").strip() == "1 alert is acknowledged"
        wait_until(lambda: "nearly full" not in asked(run, "status"), what="a status without it")
        marked = [line for line in asked(run, "alerts").splitlines() if "acknowledged" in line]
        assert len(marked) == 1
        assert "nearly full" in marked[0]
        found = json.loads(asked(run, "alerts", "--json"))
        assert [(alert["number"], alert["acknowledged"]) for alert in found["alerts"]] == [(1, True), (2, False)]
        assert [bool(target["problem"]) for target in found["targets"]] == [True, True]
        asked(run, "alerts", "ack", "7", code=1)
        run.ask({"type": "ask", "text": "may I?"}, sender="agent-1")
        wait_until(lambda: "may I?" in asked(run, "status"), what="the question")
        asked(run, "answer", "1", "yes")
        wait_until(lambda: "may I?" not in asked(run, "status"), what="neither the question nor its alert")
        found = json.loads(asked(run, "alerts", "--json"))
        assert [alert["acknowledged"] for alert in found["alerts"]] == [True, False, True]
        run.stop()


def test_a_test_message_says_what_came_of_it(tmp_path) -> None:
    with webhook() as hook:
        task = write_task(tmp_path / "task", ["hang"], extra=f"alerts: {{to: [{hook.url}, env:NO_FILE]}}\n")
        done = coral_process("notify", "test", str(task))
        assert done.returncode == 1
        assert f"{hook.url.partition('/hook')[0]}/...: sent" in done.stdout
        assert "NO_FILE is not set" in done.stdout
        assert hook.messages[0]["alerts"][0]["text"].startswith("This is a test")
        hook.status = 404
        rows = json.loads(coral_process("notify", "test", "--json", str(task)).stdout)
        assert [(row["sent"], "404" in row["reason"]) for row in rows] == [(False, False), (False, True)]
    quiet = coral_process("notify", "test", str(write_task(tmp_path / "quiet", ["hang"])))
    assert (quiet.returncode, "the task tells nobody" in quiet.stderr) == (1, True)


def test_a_target_that_hangs_holds_up_no_other_test_message(tmp_path: Path) -> None:
    with webhook() as quick:
        with webhook() as slow:
            slow.hangs.set()
            task = write_task(tmp_path / "task", ["hang"], extra=f"alerts: {{to: [{slow.url}, {quick.url}]}}\n")
            command = [sys.executable, "-P", "-m", "coral", "notify", "test", "--json", str(task)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE)
            wait_until(lambda: quick.received, what="the message to the second")
        # Only now the first one answers: it was not given up before.
        printed, _ = process.communicate(timeout=60)
    assert [row["sent"] for row in json.loads(printed)] == [True, True]
