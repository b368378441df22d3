"""A command that prints and stays: its result is taken at once, and its errors are those of the call."""

import json
from pathlib import Path

import pytest
from sample import attempt

from attempts.record import to_dict
from coral.native.coral_command import EXIT_PENDING, CoralCommand
from coral.native.tool_error import ToolError

RECORD = attempt(7, 2.0, title="t")


def coral(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> tuple[CoralCommand, list[object]]:
    """A command whose program is a script of the shell, and the results that it takes."""
    program, taken = folder / "python", list[object]()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr("coral.native.coral_command.sys.executable", str(program))

    def take(*result: object) -> None:
        taken.append(result)
        (folder / "taken").touch()

    return CoralCommand(folder, lambda _: None, take), taken


def test_a_result_is_taken_while_the_command_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command ends only when it was."""
    printed = json.dumps({"state": "published", "record": to_dict(RECORD)})
    wait = "until [ -e taken ]; do sleep 0.01; done"
    command, taken = coral(tmp_path, monkeypatch, f"printf '%s' '{printed}'\n{wait}")
    assert command.submit("t") == RECORD
    assert taken == [(RECORD, ())]
    assert command.process is None


def test_what_is_pending_has_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, taken = coral(tmp_path, monkeypatch, f"echo 'not yet' >&2\nexit {EXIT_PENDING}")
    assert (command.submit("t"), taken) == (None, [])
    with pytest.raises(ToolError, match="nobody seems to grade"):
        command.wait()


@pytest.mark.parametrize(
    ("script", "message"),
    [("echo 'coral: cannot submit: no space\nhint' >&2\nexit 3", "^cannot submit: no space$"), ("exit 3", "with 3$")],
)
def test_a_command_that_fails_is_an_error_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    command, _ = coral(tmp_path, monkeypatch, script)
    with pytest.raises(ToolError, match=message) as failed:
        command.submit("t")
    assert not failed.value.transient
    with pytest.raises(ToolError, match=message) as failed:
        command.wait()
    assert failed.value.transient
