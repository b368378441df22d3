"""The commands that a prompt names work as they stand there."""

import subprocess
from pathlib import Path

from coral.views.prompt_context import check_command


def test_the_command_of_a_check_runs_it(tmp_path: Path) -> None:
    (tmp_path / "it's one").mkdir()
    (tmp_path / "it's one" / "look.py").write_text("def score(folder):\n    return {'score': 3.5, 'in': folder}\n")
    command = check_command("it's one/look.py:score")
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "{'score': 3.5, 'in': '.'}\n"
    assert check_command("") == ""
