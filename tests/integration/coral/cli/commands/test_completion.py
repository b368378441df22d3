"""The completion in a real bash: what it proposes after some words."""

import shutil
import subprocess

import pytest

from coral.cli import COMMANDS, main
from coral.cli.commands.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_knows_every_command_option_and_topic(shell: str, capsys) -> None:
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in (*COMMANDS, "stagnant", "noisy-graders"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_verbs_options_and_topics(tmp_path, capsys) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)

    def proposed(*words: str) -> set[str]:
        line = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_coral"
        done = subprocess.run(
            ["bash", "-c", f'{line}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return {word.strip() for word in done.stdout.splitlines()}

    assert proposed("coral", "heart") == {"heartbeat"}
    assert proposed("coral", "heartbeat", "re") == {"remove", "reset"}
    assert proposed("coral", "heartbeat", "set", "--sta") == {"--stagnant"}
    assert proposed("coral", "help", "nois") == {"noisy-graders"}
