"""An agent's clone as its program finds it."""

import json

from real_runs import READ_NUMBER

from coral.config.load import load
from coral.runs.create import create_run


def test_the_instructions_mention_those_of_the_seed_that_the_program_does_not_read(tmp_path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    folder = tmp_path / "t"
    (folder / "seed").mkdir(parents=True)
    for name, text in {"x.txt": "1", "AGENTS.md": "Use tabs.", "CLAUDE.md": "Be terse."}.items():
        (folder / "seed" / name).write_text(text)
    (folder / "grade.py").write_text(READ_NUMBER)
    agents = f"agents: {{runtime: claude, options: {json.dumps({'program': str(program)})}}}\n"
    (folder / "task.yaml").write_text("task: {name: t, description: d}\ngrader: {entry: grade.py:grade}\n" + agents)
    layout = create_run(load(folder), tmp_path / "runs", lambda _: None)
    clone = layout.clone("agent-1")
    text = (clone / "CLAUDE.md").read_text()
    assert "read AGENTS.md as well" in text
    assert text.endswith("Be terse.")
    assert (clone / "AGENTS.md").read_text() == "Use tabs."
