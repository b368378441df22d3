"""What a process that was started in advance does: it waits for an order, and what it hands over nobody changes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coral.grading.handover import hand_over
from coral.processes.result_channel import ResultChannel

WAIT = """
import json, os, sys
from coral.grading import handover
handover.wait("", lambda argument, *channel: print(argument, channel, os.environ["A"], os.getcwd()), json.loads)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing is sealed")
def test_a_result_is_handed_over_once(tmp_path: Path) -> None:
    channel = ResultChannel()
    hand_over(str(tmp_path / "result.json"), channel.given[0], b"first")
    assert channel.result(100) == b"first"
    with pytest.raises(OSError):
        hand_over(str(tmp_path / "result.json"), channel.given[0], b"second")
    assert channel.result(100) == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]
    channel.close_given()
    channel.close()


def test_it_runs_what_its_order_says(tmp_path: Path) -> None:
    streams = ["/dev/null", str(tmp_path / "out"), str(tmp_path / "err")]
    for path in streams[1:]:
        Path(path).touch()
    order = {"argument": "spec", "env": {"A": "1"}, "cwd": str(tmp_path), "streams": streams, "channel": []}
    line = [sys.executable, "-P", "-c", WAIT]
    subprocess.run(line, input=json.dumps(order) + "\n", text=True, check=True, timeout=120)
    assert (tmp_path / "out").read_text() == f"spec () 1 {tmp_path}\n"


def test_it_ends_with_its_supervisor() -> None:
    line = [sys.executable, "-P", "-c", WAIT]
    done = subprocess.run(line, input='{"half', capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (125, "")
