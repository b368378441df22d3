"""The handler of SIGINT in a process of its own: it acts and ends the process, whatever happens."""

import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("action", ["open('saved', 'w').close()", "1 / 0"])
def test_an_interrupt_acts_and_ends_the_process_whatever_happens(tmp_path, action):
    """Once, within a busy loop, without unwinding; SIGINT is handled even where it was ignored at the start."""
    program = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from coral.native.interrupt import on_interrupt\n"
        f"on_interrupt(lambda: {action}, lambda: open('second', 'w').close())\n"
        "print('ready', flush=True)\ntry:\n    while True:\n        pass\nfinally:\n    open('unwound', 'w')\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    assert sorted(path.name for path in tmp_path.iterdir()) == (["saved", "second"] if "saved" in action else [])
