"""A task's grader, prepared and run on the seed as a real attempt would be."""

import json
import os
import stat
import time
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest
from files import write_files

from coral.config.load import Config, load
from coral.errors import CoralError
from coral.grading.kinds import copy_grader_files
from coral.grading.once import grade_once

TASK = "task: {name: t, description: d}\ngrader:\n"


def task(folder: Path, grader: str, files: Mapping[str, str]) -> Config:
    """A task with these files whose seed is `main.txt`; what begins like a script can be executed."""
    return load(write_files(folder, {"seed/main.txt": "42", "task.yaml": TASK + grader, **files}))


SCRIPT = '#!/bin/sh\nprintf \'{"score": %s, "feedback": "%s"}\' "$(cat main.txt)" "$CORAL_ARGS" > "$CORAL_RESULT"\n'


@pytest.mark.parametrize("command", ['["./grade.sh"]', "./grade.sh", "sh grade.sh", "cat main.txt > $CORAL_RESULT"])
def test_a_command_runs_in_the_checkout(tmp_path, command: str) -> None:
    config = task(tmp_path / "t", f"  command: {command}\n", {"grade.sh": SCRIPT})
    result = grade_once(config, tmp_path / "work")
    assert (result.outcome, result.score) == ("scored", 42), result


def test_a_command_gets_its_arguments_and_knows_what_it_grades(tmp_path) -> None:
    script = """#!/bin/sh
        test "$CORAL_ATTEMPT $CORAL_KIND" = "0 baseline" && test "$(pwd)" = "$CORAL_WORKSPACE" || exit 3
        test -d "$TMPDIR" && test -f "$CORAL_PRIVATE/data/hidden.txt" && test -z "$GIT_DIR" || exit 4
        printf '{"score": 1, "metrics": %s}' "$CORAL_ARGS" > "$CORAL_RESULT"
    """
    grader = "  command: [./grade.sh]\n  private: [data]\n  args: {size: 3}\n"
    config = task(tmp_path / "t", grader, {"grade.sh": script, "data/hidden.txt": "x"})
    result = grade_once(config, tmp_path / "work")
    assert (result.score, result.metrics) == (1, {"size": 3}), result


READS = "import json, os\n\ndef grade(workspace):\n    return {'score': 1, 'feedback': json.dumps(dict(os.environ))}\n"
PRINTS = """#!/bin/sh
exec python3 -c '
import json, os
json.dump({"score": 1, "feedback": json.dumps(dict(os.environ))}, open(os.environ["CORAL_RESULT"], "w"))
'
"""


@pytest.mark.parametrize("grader", ["  entry: grade.py:grade\n", "  command: [./show.sh]\n"])
def test_a_grader_gets_no_key_of_the_user(tmp_path, monkeypatch, grader: str) -> None:
    hidden = {"OPENAI_API_KEY": "k", "GITHUB_TOKEN": "t", "HTTPS_PROXY": "http://me:secret@x", "MY_DATA": "d"}
    for name, value in {**hidden, "OMP_NUM_THREADS": "2", "DATA_FOLDER": "/data"}.items():
        monkeypatch.setenv(name, value)
    config = task(tmp_path / "t", f"{grader}  pass_env: [DATA_FOLDER]\n", {"grade.py": READS, "show.sh": PRINTS})
    result = grade_once(config, tmp_path / "work")
    seen = json.loads(result.feedback)
    assert not hidden.keys() & seen.keys()
    assert (seen["OMP_NUM_THREADS"], seen["DATA_FOLDER"]) == ("2", "/data")
    assert seen["PATH"]


def test_a_function_sees_the_seed_and_its_own_files_at_their_places(tmp_path) -> None:
    code = """
from pathlib import Path
import helper

def grade(workspace):
    assert Path(__file__).with_name("data").joinpath("n").read_text() == "2"
    assert not (workspace / ".git").exists()
    return helper.factor() * float((workspace / "main.txt").read_text())
"""
    config = task(
        tmp_path / "t",
        "  entry: judge/grade.py:grade\n",
        {"judge/grade.py": code, "judge/helper.py": "def factor(): return 2", "judge/data/n": "2"},
    )
    assert grade_once(config, tmp_path / "work").score == 84


def test_what_a_grader_says_when_it_breaks_is_shown(tmp_path) -> None:
    config = task(tmp_path / "t", "  command: [./grade.sh]\n", {"grade.sh": "#!/bin/sh\necho no GPU >&2; exit 5\n"})
    result = grade_once(config, tmp_path / "work")
    assert (result.outcome, result.output) == ("crashed", "no GPU\n")
    assert "exit code 5" in result.reason
    missing = task(tmp_path / "t2", "  command: [no-such-program]\n", {})
    assert "no-such-program" in grade_once(missing, tmp_path / "work2").output


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        ("trap '' INT TERM\nsetsid sleep 987 & sleep 987 & echo $! > $CORAL_RESULT.pids; wait\n", "crashed"),
        ("setsid sleep 987 > /dev/null 2>&1 &\necho 1 > $CORAL_RESULT\n", "scored"),
    ],
    ids=["after a timeout", "after a score"],
)
def test_a_grader_leaves_nothing_running(tmp_path, script: str, outcome: str) -> None:
    config = task(tmp_path / "t", "  command: [./grade.sh]\n", {"grade.sh": f"#!/bin/sh\n{script}"})
    result = grade_once(config, tmp_path / "work", timeout=0.5 if outcome == "crashed" else 120)
    assert result.outcome == outcome, result
    assert outcome == "scored" or "timeout" in result.reason
    assert _sleepers(tmp_path) == []


def _sleepers(folder: Path) -> list[psutil.Process]:
    """The `sleep 987` that work below the folder and are not gone within a moment."""
    deadline = time.monotonic() + 120  # an eighth of what they sleep
    while True:
        found = [
            p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] == ["sleep", "987"] and _below(p, folder)
        ]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.01)


def _below(process: psutil.Process, folder: Path) -> bool:
    try:
        return Path(process.cwd()).is_relative_to(folder)
    except (psutil.Error, OSError):
        return False


def test_the_graders_copies_are_private_and_complete(tmp_path) -> None:
    grader = "  entry: grade.py:grade\n  private: [data, extra.py]\n"
    config = task(
        tmp_path / "t", grader, dict.fromkeys(["grade.py", "extra.py", "data/deep/x", "data/y", "other.py"], "")
    )
    (tmp_path / "t" / "data" / "gone").symlink_to("nowhere")
    copy_grader_files(config.grader, config.folder, tmp_path / "private")
    copy_grader_files(config.grader, config.folder, tmp_path / "private")
    found = {
        str(path.relative_to(tmp_path / "private")) for path in (tmp_path / "private").rglob("*") if path.is_file()
    }
    assert found == {"grade.py", "extra.py", "data/deep/x", "data/y"}
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o700


def test_a_file_that_cannot_be_copied_is_the_users_mistake(tmp_path) -> None:
    config = task(tmp_path / "t", "  entry: grade.py:grade\n  private: [data]\n", {"grade.py": "", "data/x": ""})
    os.mkfifo(tmp_path / "t" / "data" / "pipe")
    with pytest.raises(CoralError, match=r"cannot copy the grader's file data") as error:
        copy_grader_files(config.grader, config.folder, tmp_path / "private")
    assert "task.yaml" in error.value.hint


def test_a_seed_that_cannot_be_read_is_the_users_mistake(tmp_path) -> None:
    config = task(tmp_path / "t", "  entry: grade.py:grade\n", {"grade.py": "def grade(w): return 1"})
    (tmp_path / "t" / "seed" / "main.txt").unlink()
    with pytest.raises(CoralError, match="no files"):
        grade_once(config, tmp_path / "work")
