"""Real programs that are of no use - one meets a limit and exits 0, one crashes, one has nothing to say - back off."""

import json

from files import write_files
from real_runs import READ_NUMBER, Run, wait_until

from coral.cli import main
from coral.fleet import actions as do
from coral.fleet import events as on

LAUNCHES = 5
PROGRAMS = {
    "agent-1": "echo the limit is reached until 1000000000",
    "agent-2": "echo oh no; exit 3",
    "agent-3": "echo all is well",
}
TASK = f"""\
task: {{name: useless, description: Do nothing.}}
grader: {{entry: grade.py:grade}}
run: {{backoff: 0.2, backoff_max: 1.6, breaker_crashes: 1000}}
agents:
  assignments:
    - runtime: command
      account: one
      options: {{start: [/bin/sh, -c, {json.dumps(PROGRAMS["agent-1"])}], limit_pattern: 'until (?P<until>\\d+)'}}
    - {{runtime: command, account: two, options: {{start: [/bin/sh, -c, {json.dumps(PROGRAMS["agent-2"])}]}}}}
    - {{runtime: command, account: two, options: {{start: [/bin/sh, -c, {json.dumps(PROGRAMS["agent-3"])}]}}}}
"""


def test_each_is_started_again_after_a_pause_that_grows(start, tmp_path) -> None:
    run = start(write_files(tmp_path, {"seed/x.txt": "0", "grade.py": READ_NUMBER, "task.yaml": TASK}))
    again = [(agent, LAUNCHES) for agent in PROGRAMS]
    wait_until(lambda: all(run.layout.output(*each).exists() for each in again), what="launches of each")
    run.stop()
    pauses = pauses_of(run)
    for agent in PROGRAMS:
        assert len(pauses[agent]) >= LAUNCHES - 1
        for failures, pause in enumerate(pauses[agent]):
            assert pause > min(0.2 * 2**failures, 1.6) - 1e-6, f"{agent} after {failures + 1} launches for nothing"
    assert main(("replay", "--run", str(run.layout.root))) == 0


def pauses_of(run: Run) -> dict[str, list[float]]:
    """Between the ends of an agent's launches and its starts, on the run's clock."""
    ended, pauses = dict[str, float](), {agent: list[float]() for agent in PROGRAMS}
    for decision in run.decisions():
        for event in decision.events:
            if isinstance(event, on.Exited):
                ended[event.agent] = decision.now.run_time
        for action in decision.actions:
            if isinstance(action, do.Spawn) and action.agent in ended:
                pauses[action.agent].append(decision.now.run_time - ended[action.agent])
    return pauses
