"""What the nodes of a cluster must have for a task's agents."""

import json
import re

import pytest
from real_runs import write_task

from coral.agent_setup.nodes import places_of
from coral.config.load import load


@pytest.mark.parametrize("is_here", [True, False])
def test_nodes_need_git_and_the_programs_of_the_agents_that_run_there(tmp_path, is_here):
    program = tmp_path / "codex"
    if is_here:
        program.write_text("")
        program.chmod(0o700)
    fleet = [
        {"runtime": "native", "place": {"num_cpus": 2, "labels": {"kind": "large"}}},
        {"runtime": "codex", "options": {"program": str(program)}, "place": {"num_gpus": 1}},
        {"runtime": "native"},
    ]
    path = write_task(tmp_path / "task", ["hang"])
    text = (path / "task.yaml").read_text()
    agents = json.dumps({"assignments": fleet, "ray": {"address": "h:1"}})
    (path / "task.yaml").write_text(re.sub(r"agents:\n(  .*\n)+", lambda _: f"agents: {agents}\n", text))
    assert places_of(load(path)) == [
        {"runtime": "native", "resources": {"CPU": 2, "GPU": 0}, "labels": {"kind": "large"}, "programs": ["git"]},
        {"runtime": "codex", "resources": {"CPU": 1, "GPU": 1}, "labels": {}, "programs": [str(program), "git"]},
    ]
