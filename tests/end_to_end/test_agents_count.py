"""A fleet grows and shrinks when its run is resumed, with all that its agents have done."""

from real_runs import coral_process, wait_until

FOREVER = "echo up; while :; do echo $RANDOM$(date +%N) > x.txt; coral eval -m try >/dev/null; sleep 0.2; done\n"


def authors(run) -> set[str]:
    return {attempt.agent for attempt in run.attempts() if attempt.number}


def phases(run) -> list[str]:
    return [agent["phase"] for agent in run.status()["agents"]]


def resume(run, *words: str) -> None:
    done = coral_process("resume", "--detach", "--run", str(run.layout.root), *words)
    assert done.returncode == 0, done.stderr


def test_a_fleet_grows_and_shrinks_at_a_resume(start) -> None:
    run = start(FOREVER)
    wait_until(lambda: authors(run) == {"agent-1"}, what="the first agent's attempt")
    run.stop()
    resume(run, "agents.count=3")
    wait_until(lambda: authors(run) == {"agent-1", "agent-2", "agent-3"}, what="attempts of all three")
    wait_until(lambda: phases(run) == ["running"] * 3, what="all three")
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    before, launches = run.attempts(), [len(run.prompts(agent)) for agent in ("agent-2", "agent-3")]
    resume(run, "agents.count=1")
    wait_until(lambda: len(run.attempts()) > len(before) + 2, what="more attempts")
    wait_until(lambda: phases(run) == ["running", "retired", "retired"], what="the end of two agents")
    assert [len(run.prompts(agent)) for agent in ("agent-2", "agent-3")] == launches
    told = coral_process("transcript", "agent-3", "--run", str(run.layout.root))
    assert (told.returncode, told.stderr) == (0, "")
    assert coral_process("stop", "--run", str(run.layout.root)).returncode == 0
    assert run.left() == []
