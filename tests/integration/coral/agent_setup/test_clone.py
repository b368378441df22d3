"""An agent's clone as its program finds it."""

import json

from files import write_files
from real_runs import READ_NUMBER

from coral.config.load import load
from coral.runs.create import create_run


def test_the_instructions_mention_those_of_the_seed_that_the_program_does_not_read(tmp_path) -> None:
    agents = f"agents: {{runtime: claude, options: {json.dumps({'program': str(tmp_path / 'claude')})}}}\n"
    task = "task: {name: t, description: d}\ngrader: {entry: t/grade.py:grade}\n" + agents
    seed = {"seed/x.txt": "1", "seed/AGENTS.md": "Use tabs.", "seed/CLAUDE.md": "Be terse."}
    write_files(tmp_path, {"claude": "#!/bin/sh\n", "t/grade.py": READ_NUMBER, "task.yaml": task, **seed})
    layout = create_run(load(tmp_path), tmp_path / "runs", lambda _: None)
    clone = layout.clone("agent-1")
    text = (clone / "CLAUDE.md").read_text()
    assert "read AGENTS.md as well" in text
    assert text.endswith("Be terse.")
    assert (clone / "AGENTS.md").read_text() == "Use tabs."
