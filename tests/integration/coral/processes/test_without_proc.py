"""What psutil says of processes where there is no /proc, held against what /proc says here."""

import os
import subprocess
import sys

import pytest

from coral.processes import process_tree, without_proc


@pytest.fixture(autouse=True)
def no_proc(monkeypatch) -> None:
    monkeypatch.setattr(process_tree, "_has_proc", lambda: False)


def test_a_process_is_known_with_its_descendants_and_its_tag() -> None:
    script = f'{sys.executable} -c "import time; time.sleep(60)" & echo up; wait'
    tag = f"run-{os.getpid()}/agent-1/1"  # tests at the same time have others
    environment = {**os.environ, process_tree.TAG: tag}
    command = ["/bin/sh", "-c", script]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout.readline() == b"up\n"
        identity = process_tree.identify(child.pid)
        assert process_tree.is_alive(identity)
        assert without_proc.environment(child.pid).split(b"\0").count(f"CORAL_LAUNCH={tag}".encode()) == 1
        found = process_tree.members(identity, tag)
        assert len(found) == 2
        for one in found:
            os.kill(one.pid, 9)
    assert not process_tree.is_alive(identity)
    assert without_proc.environment(child.pid) == b""


def test_we_are_among_the_processes() -> None:
    (found,) = [(parent, began) for pid, parent, began in without_proc.processes() if pid == os.getpid()]
    assert found == (os.getppid(), without_proc.started(os.getpid()))
