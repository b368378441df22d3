"""A real agent that reads first: what it hands in meanwhile stays out, and its end of turn is its beginning."""

from real_runs import tries, wait_until

from coral.cli import main

READS = [*tries(5), {"crash": 0}, {"submit": "the same at last"}, *tries(6), "hang"]


def test_nothing_is_graded_until_the_agent_has_read(start, capsys) -> None:
    run = start(READS, overrides=("agents.research=600", "agents.count=1"))
    first, second = run.wait_for_attempts(2)
    # The one that was refused is no attempt; handed in again, unchanged, it is.
    assert [(each.number, each.title, each.score) for each in (first, second)] == [
        (1, "the same at last", 5.0),
        (2, "value 6", 6.0),
    ]
    prompts = run.prompts("agent-1")
    assert "**Research first.** For 10 h you read and think" in prompts[0]["text"]
    assert "You are at research: for " in prompts[0]["text"]
    assert run.received("agent-1", "begin") == ["h1"]
    begun = next(prompt["text"] for prompt in prompts if "## Heartbeat: begin" in prompt["text"])
    assert "Your research is over" in begun
    assert "You are at research" not in begun
    assert "You begin with research: for your first 10 h" in (run.layout.clone("agent-1") / "AGENTS.md").read_text()
    errors = run.layout.errors("agent-1", 1).read_text()
    assert "coral: cannot grade this submission: you read and think first" in errors
    run.stop()
    assert main(("replay", "--run", str(run.layout.root))) == 0


def test_the_status_says_who_reads_and_for_how_long(start, capsys) -> None:
    run = start(["hang"], overrides=("agents.research=30",))

    def research() -> object:
        shown = run.status() or {"agents": []}
        return next((each["research"] for each in shown["agents"]), None)

    seconds = wait_until(research, what="the research")
    assert 0 < seconds <= 1800
    assert main(("status", "--run", str(run.layout.root))) == 0
    assert "begin " in capsys.readouterr().out
